package managedfields

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	library "k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/mergeschema"
	"kctl/apiserver/internal/scheme"
	"kctl/proto/core"
)

// Options describe the kind whose managedFields a Tracker maintains.
type Options struct {
	Kind schema.GroupVersionKind
	// Schema returns the schema of the whole object; it is called once, when first needed.
	// It returns mergeschema.Anything if nothing is known of the kind but its metadata.
	Schema func() *mergeschema.Schema
	// New makes an empty object.
	New func() core.Object
	// Default fills in what was left out; it may be nil.
	Default func(core.Object)
	// Settle brings a merged object, where New makes unstructured ones, into the form in which
	// a client's is decoded; it may be nil.
	Settle func(core.Object) error
	// Reset names, by subresource, the fields that writes through it can't change: {"":
	// {"status"}, "status": {"spec", "metadata.labels"}}.
	Reset map[string][]string
	// Custom: the kind's schema may not fit what is stored.
	Custom bool
	Clock  clock.PassiveClock
}

// Tracker maintains the managedFields of one kind's objects. It is safe for
// concurrent use.
type Tracker struct {
	options Options
	// schemas are the Schema without unowned fields, by subresource.
	schemas func() map[string]*mergeschema.Schema
	// newcomers are the plans for new objects, by subresource, if there are any.
	newcomers func() map[string]*plan
	empty     func() []byte

	mu sync.Mutex
	// fieldManagers are the library's, by subresource, made when first needed.
	fieldManagers map[string]*library.FieldManager
	converter     func() *converter
	// peers are the trackers of the other kinds as which the objects are served.
	peers []peer
	// joined are the converters for pairs of a custom kind's versions, which its Trackers share.
	joined *joined
}

// Manager is a field manager: the name by which it owns fields, and the
// subresource that it writes through.
type Manager struct {
	Name, Subresource string
}

// other stands for all subresources that Reset does not name.
const other = "*"

// New returns the Tracker of a kind.
func New(o Options) *Tracker {
	o.Schema = sync.OnceValue(o.Schema) // a custom kind's is made of its definition, which may be large
	t := &Tracker{options: o, fieldManagers: map[string]*library.FieldManager{}, joined: new(joined)}
	t.schemas = sync.OnceValue(func() map[string]*mergeschema.Schema {
		all := map[string]*mergeschema.Schema{other: owned(o.Schema(), nil)}
		for subresource, reset := range o.Reset {
			all[subresource] = owned(o.Schema(), reset)
		}
		return all
	})
	t.newcomers = sync.OnceValue(t.plans)
	t.empty = sync.OnceValue(func() []byte {
		var text bytes.Buffer
		if err := encode(o.New(), &text); err != nil {
			return []byte("{}")
		}
		return text.Bytes()
	})
	t.converter = sync.OnceValue(func() *converter { return newConverter(t, o.Schema()) })
	return t
}

// server are the fields of metadata that no manager owns.
var server = []string{"name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
	"resourceVersion"}

// owned is an object's schema without unowned fields.
func owned(s *mergeschema.Schema, reset []string) *mergeschema.Schema {
	hidden, within := []string{"apiVersion", "kind"}, map[string][]string{"metadata": slices.Clone(server)}
	for _, name := range reset {
		if outer, inner, ok := strings.Cut(name, "."); ok {
			within[outer] = append(within[outer], inner)
		} else {
			hidden = append(hidden, name)
		}
	}
	out := hide(s, hidden)
	for outer, names := range within {
		if out.Fields[outer] != ignored {
			out.Fields[outer] = hide(s.Field([]byte(outer)), names)
		}
	}
	return out
}

func hide(s *mergeschema.Schema, names []string) *mergeschema.Schema {
	out := &mergeschema.Schema{Kind: mergeschema.Map, Element: mergeschema.Anything}
	if s != nil && s.Kind != mergeschema.Deduced {
		*out = *s
	}
	out.Fields = maps.Clone(out.Fields)
	if out.Fields == nil {
		out.Fields = map[string]*mergeschema.Schema{}
	}
	for _, name := range names {
		out.Fields[name] = ignored
	}
	return out
}

// encode encodes obj in JSON, without managedFields.
func encode(obj core.Object, to *bytes.Buffer) error {
	entries := obj.GetManagedFields()
	if entries != nil {
		obj.SetManagedFields(nil)
		defer obj.SetManagedFields(entries)
	}
	if err := scheme.Write(to, obj); err != nil {
		return fmt.Errorf("encode %T: %w", obj, err)
	}
	return nil
}

// Update makes the manager the owner of what it changed in obj, which was old
// before; old is nil for a new object. before is old in JSON. Errors, and too much work, only
// leave managedFields incomplete: an update has no conflicts and is never refused
// because of them.
func (t *Tracker) Update(obj, old core.Object, before []byte, by Manager) {
	err := t.track(obj, old, before, by)
	if err == nil {
		return
	}
	fieldManager, err := t.fieldManager(by.Subresource, old)
	if err != nil || t.objectSteps(obj) > maxApplySteps || old != nil && t.objectSteps(old) > maxApplySteps {
		obj.SetManagedFields(nil)
		return
	}
	live := runtime.Object(old)
	if old == nil {
		empty := t.options.New()
		empty.GetObjectKind().SetGroupVersionKind(t.options.Kind)
		live = empty
	}
	obj.GetObjectKind().SetGroupVersionKind(t.options.Kind)
	result := fieldManager.UpdateNoErrors(live, obj, by.Name)
	if tracked, ok := result.(core.Object); ok {
		obj.SetManagedFields(tracked.GetManagedFields())
	}
}

// track is Update for ordinary cases; it returns an error for others.
func (t *Tracker) track(obj, old core.Object, before []byte, by Manager) error {
	var entries []metav1.ManagedFieldsEntry
	if old != nil {
		entries = old.GetManagedFields()
	} else {
		before = t.empty()
	}
	given := obj.GetManagedFields()
	if old != nil && given != nil && len(given) == 0 && by.Subresource == "" { // explicitly empty, which is more than omitted
		obj.SetManagedFields(nil)
		return nil
	}
	if len(given) > 0 && !sameEntries(given, entries) {
		return errUnusual
	}
	if old != nil && len(entries) == 0 {
		// An object whose managedFields were cleared, or never set, stays without
		// them until something is applied.
		obj.SetManagedFields(nil)
		return nil
	}
	d := differences.Get().(*difference)
	defer differences.Put(d)
	way := t.wayOf(by.Subresource)
	if old != nil || !d.collect(t.newcomers()[way], obj) {
		if err := d.read(before, obj); err != nil {
			return err
		}
		if err := d.compare(t.schemas()[way]); err != nil {
			return err
		}
	}
	if d.changed.empty() && d.removed.empty() {
		obj.SetManagedFields(entries)
		return nil
	}
	claim := ownership{version: t.options.Kind.GroupVersion().String(), by: by, now: t.options.Clock.Now}
	entries, err := claim.update(entries, &d.changed, &d.removed, &d.old)
	if err == nil {
		obj.SetManagedFields(entries)
	}
	return err
}

// wayOf is the name by which schemas and newcomers know a subresource.
func (t *Tracker) wayOf(subresource string) string {
	if _, ok := t.schemas()[subresource]; ok {
		return subresource
	}
	return other
}

var differences = sync.Pool{New: func() any { return new(difference) }}

// sameEntries reports whether managedFields are identical.
func sameEntries(a, b []metav1.ManagedFieldsEntry) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.ManagedFieldsEntry) bool {
		return sameEntry(x, y) && sameTime(x.Time, y.Time)
	})
}

// sameEntry compares everything except the time.
func sameEntry(a, b metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.APIVersion == b.APIVersion &&
		a.FieldsType == b.FieldsType && a.Subresource == b.Subresource && sameFields(a.FieldsV1, b.FieldsV1)
}

func sameFields(a, b *metav1.FieldsV1) bool {
	if a == nil || b == nil {
		return a == b
	}
	return string(a.Raw) == string(b.Raw)
}

func sameTime(a, b *metav1.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Time.Equal(b.Time)
}

// KeepTimes replaces the managedFields of obj with those of old if they differ
// in times only, which is no change. It reports whether it did.
func KeepTimes(obj, old core.Object) bool {
	a, b := obj.GetManagedFields(), old.GetManagedFields()
	if !slices.EqualFunc(a, b, sameEntry) {
		return false
	}
	for i := range a {
		if !sameTime(a[i].Time, b[i].Time) {
			obj.SetManagedFields(b)
			return true
		}
	}
	return false
}

// AllElseEqual reports whether objects differ in their managedFields at most.
func AllElseEqual(a, b core.Object) bool {
	a, b = a.DeepCopyObject().(core.Object), b.DeepCopyObject().(core.Object)
	a.SetManagedFields(nil)
	b.SetManagedFields(nil)
	return reflect.DeepEqual(a, b)
}

// fieldManager returns the library's manager for writes through a subresource of
// old, which is nil for a new object. If old's fields are owned in other
// versions, it is made for this call, since clients may write any number of
// versions there.
func (t *Tracker) fieldManager(subresource string, old core.Object) (*library.FieldManager, error) {
	versions := []string{t.options.Kind.GroupVersion().String()}
	if old != nil {
		for _, entry := range old.GetManagedFields() {
			if !slices.Contains(versions, entry.APIVersion) {
				versions = append(versions, entry.APIVersion)
			}
		}
	}
	if len(versions) > 1 {
		return t.newFieldManager(subresource, versions)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if fieldManager := t.fieldManagers[subresource]; fieldManager != nil {
		return fieldManager, nil
	}
	fieldManager, err := t.newFieldManager(subresource, versions)
	if err == nil {
		t.fieldManagers[subresource] = fieldManager
	}
	return fieldManager, err
}

func (t *Tracker) newFieldManager(subresource string, versions []string) (*library.FieldManager, error) {
	build := library.NewDefaultFieldManager
	if t.options.Custom {
		build = library.NewDefaultCRDFieldManager
	}
	var convert libraryConverter = t.converter()
	if len(versions) > 1 {
		convert = newRememberingConverter(t.converter())
	}
	fieldManager, err := build(convert, convert, convert, convert,
		t.options.Kind, t.options.Kind.GroupVersion(), subresource, t.resetFilter(subresource, versions))
	if err != nil {
		return nil, fmt.Errorf("field manager of %s: %w", t.options.Kind.Kind, err)
	}
	return fieldManager, nil
}

// Guard restores obj's earlier managedFields if they have been changed and are
// unreadable; the error says why.
func Guard(obj core.Object, before []metav1.ManagedFieldsEntry) error {
	now := obj.GetManagedFields()
	if len(now) == len(before) && (len(now) == 0 || &now[0] == &before[0]) || sameEntries(now, before) {
		return nil
	}
	err := library.ValidateManagedFields(now)
	if err != nil {
		obj.SetManagedFields(before)
	}
	return err
}
