package managed

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/scheme"
	"kctl/apiserver/internal/shape"
	"kctl/proto/core"
)

// Options say of what kind the objects are that a Manager keeps account of.
type Options struct {
	Kind schema.GroupVersionKind
	// Shape of the whole object, asked for when it is first needed. It answers
	// shape.Anything where nothing is known of the kind but that it has
	// metadata.
	Shape func() *shape.Shape
	// New makes an empty object.
	New func() core.Object
	// Default fills in what was left out; it may be nil.
	Default func(core.Object)
	// Reset names, by subresource, the fields that writes in that way don't
	// change, whatever they say: {"": {"status"}, "status": {"spec", "metadata.labels"}}.
	Reset map[string][]string
	// Custom kinds may have a shape that does not fit what is stored.
	Custom bool
	Clock  clock.PassiveClock
}

// Manager keeps account of the fields of one kind's objects. It is safe for
// concurrent use.
type Manager struct {
	options Options
	// shapes are the Shape without what nobody owns, by subresource.
	shapes func() map[string]*shape.Shape
	// newcomers are the plans for new objects, by subresource, where there are any.
	newcomers func() map[string]*plan
	empty     func() []byte

	mu sync.Mutex
	// libraries are made when they are first needed, by subresource.
	libraries map[string]*managedfields.FieldManager
	converter func() *converter
	// peers are the managers of the other kinds as which the objects are had.
	peers []peer
}

// By says who writes, and through which subresource.
type By struct {
	Manager, Subresource string
}

// other stands for the subresources that Reset does not name.
const other = "*"

// New returns the Manager of a kind.
func New(o Options) *Manager {
	m := &Manager{options: o, libraries: map[string]*managedfields.FieldManager{}}
	m.shapes = sync.OnceValue(func() map[string]*shape.Shape {
		all := map[string]*shape.Shape{other: owned(o.Shape(), nil)}
		for subresource, reset := range o.Reset {
			all[subresource] = owned(o.Shape(), reset)
		}
		return all
	})
	m.newcomers = sync.OnceValue(m.plans)
	m.empty = sync.OnceValue(func() []byte {
		var text bytes.Buffer
		if err := encode(o.New(), &text); err != nil {
			return []byte("{}")
		}
		return text.Bytes()
	})
	m.converter = sync.OnceValue(func() *converter { return newConverter(m) })
	return m
}

// server are the fields of metadata that belong to no manager.
var server = []string{"name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields", "resourceVersion"}

// owned is an object's shape without what nobody owns.
func owned(s *shape.Shape, reset []string) *shape.Shape {
	hidden, metadata := []string{"apiVersion", "kind"}, slices.Clone(server)
	for _, name := range reset {
		if inner, ok := strings.CutPrefix(name, "metadata."); ok {
			metadata = append(metadata, inner)
		} else {
			hidden = append(hidden, name)
		}
	}
	out := hide(s, hidden)
	if out.Fields["metadata"] != ignored {
		out.Fields["metadata"] = hide(s.Field([]byte("metadata")), metadata)
	}
	return out
}

func hide(s *shape.Shape, names []string) *shape.Shape {
	out := &shape.Shape{Kind: shape.Map, Element: shape.Anything}
	if s != nil && s.Kind != shape.Deduced {
		*out = *s
	}
	out.Fields = maps.Clone(out.Fields)
	if out.Fields == nil {
		out.Fields = map[string]*shape.Shape{}
	}
	for _, name := range names {
		out.Fields[name] = ignored
	}
	return out
}

// encode writes obj in JSON, without accounts.
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

// Update accounts for what by changed in obj, which was old before; old is nil
// for a new object. before is old in JSON. What goes wrong is left out of the
// accounts: they are never a reason to refuse a write.
func (m *Manager) Update(obj, old core.Object, before []byte, by By) {
	err := m.account(obj, old, before, by)
	if err == nil {
		return
	}
	library, err := m.library(by.Subresource)
	if err != nil {
		obj.SetManagedFields(nil)
		return
	}
	live := runtime.Object(old)
	if old == nil {
		empty := m.options.New()
		empty.GetObjectKind().SetGroupVersionKind(m.options.Kind)
		live = empty
	}
	obj.GetObjectKind().SetGroupVersionKind(m.options.Kind)
	result := library.UpdateNoErrors(live, obj, by.Manager)
	if accounted, ok := result.(core.Object); ok {
		obj.SetManagedFields(accounted.GetManagedFields())
	}
}

// account is Update for the ordinary case; errors say that this is none.
func (m *Manager) account(obj, old core.Object, before []byte, by By) error {
	way := by.Subresource
	s, ok := m.shapes()[way]
	if !ok {
		way = other
		s = m.shapes()[way]
	}
	var entries []metav1.ManagedFieldsEntry
	if old != nil {
		entries = old.GetManagedFields()
	} else {
		before = m.empty()
	}
	given := obj.GetManagedFields()
	if old != nil && given != nil && len(given) == 0 { // said to be empty, which is more than left out
		obj.SetManagedFields(nil)
		return nil
	}
	if len(given) > 0 && !sameEntries(given, entries) {
		return errUnusual
	}
	if old != nil && len(entries) == 0 {
		// Whose accounts were reset, or never begun, stays without until
		// something is applied.
		obj.SetManagedFields(nil)
		return nil
	}
	d := differences.Get().(*difference)
	defer differences.Put(d)
	if old != nil || !d.enter(m.newcomers()[way], obj) {
		if err := d.read(before, obj); err != nil {
			return err
		}
		if err := d.compare(s); err != nil {
			return err
		}
	}
	if d.changed.empty() && d.removed.empty() {
		obj.SetManagedFields(entries)
		return nil
	}
	book := book{version: m.options.Kind.GroupVersion().String(), by: by, now: m.options.Clock.Now}
	entries, err := book.enter(entries, &d.changed, &d.removed, &d.old)
	if err == nil {
		obj.SetManagedFields(entries)
	}
	return err
}

var differences = sync.Pool{New: func() any { return new(difference) }}

// sameEntries compares accounts to the letter.
func sameEntries(a, b []metav1.ManagedFieldsEntry) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.ManagedFieldsEntry) bool {
		return sameEntry(x, y) && sameTime(x.Time, y.Time)
	})
}

// sameEntry compares all but the time.
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

// KeepTimes makes the accounts of obj those of old where they differ in nothing
// but times: that alone is no change. It tells whether they do.
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

func (m *Manager) library(subresource string) (*managedfields.FieldManager, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if library := m.libraries[subresource]; library != nil {
		return library, nil
	}
	convert := m.converter()
	build := managedfields.NewDefaultFieldManager
	if m.options.Custom {
		build = managedfields.NewDefaultCRDFieldManager
	}
	library, err := build(convert, convert, convert, convert,
		m.options.Kind, m.options.Kind.GroupVersion(), subresource, m.resetFilter(subresource))
	if err != nil {
		return nil, fmt.Errorf("field manager of %s: %w", m.options.Kind.Kind, err)
	}
	m.libraries[subresource] = library
	return library, nil
}

// Guard gives obj back the accounts that it had before somebody changed them,
// unless they still can be read: the error says why they can't.
func Guard(obj core.Object, before []metav1.ManagedFieldsEntry) error {
	now := obj.GetManagedFields()
	if len(now) == len(before) && (len(now) == 0 || &now[0] == &before[0]) || sameEntries(now, before) {
		return nil
	}
	err := managedfields.ValidateManagedFields(now)
	if err != nil {
		obj.SetManagedFields(before)
	}
	return err
}
