package managedfields

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	library "k8s.io/apimachinery/pkg/util/managedfields"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"kctl/apiserver/internal/mergeschema"
	"kctl/apiserver/internal/status"
	"kctl/proto/core"
	"kctl/proto/quantity"
)

// Apply merges what the manager applied into the live object, and returns the
// result with its managedFields. old is nil if the object does not exist; with
// force, the manager takes over what others own. Errors are status errors; a
// conflict names the fields and their managers.
func (t *Tracker) Apply(old core.Object, applied *unstructured.Unstructured, by Manager, force bool) (core.Object, error) {
	if err := t.checkSteps(old, applied.Object, by); err != nil {
		return nil, err
	}
	fieldManager, err := t.fieldManager(by.Subresource, old)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	live := old
	if live == nil {
		live = t.options.New()
	}
	live.GetObjectKind().SetGroupVersionKind(t.options.Kind)
	merged, err := fieldManager.Apply(live, applied, by.Name, force)
	if err != nil {
		return nil, statusOf(err)
	}
	out, ok := merged.(core.Object)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("apply made a %T", merged))
	}
	return out, nil
}

// statusOf turns the library's errors into upstream's statuses: most are
// reported as internal errors, though the fault is in the client's YAML.
func statusOf(err error) error {
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		return err
	}
	return status.WithoutReason(err.Error())
}

// resetFilter keeps fields that a subresource resets from counting as changed,
// in every version in which managers own fields of old.
func (t *Tracker) resetFilter(subresource string, versions []string) map[fieldpath.APIVersion]fieldpath.Filter {
	reset := t.options.Reset[subresource]
	if len(reset) == 0 {
		return nil
	}
	filters, filter := map[fieldpath.APIVersion]fieldpath.Filter{}, fieldpath.NewExcludeSetFilter(pathsOf(reset))
	for _, version := range versions {
		filters[fieldpath.APIVersion(version)] = filter
	}
	return filters
}

func pathsOf(reset []string) *fieldpath.Set {
	set := fieldpath.NewSet()
	for _, name := range reset {
		var path fieldpath.Path
		for step := range strings.SplitSeq(name, ".") {
			path = append(path, fieldpath.MakePathOrDie(step)...)
		}
		set.Insert(path)
	}
	return set
}

// converter converts between objects and the library's values.
type converter struct {
	tracker *Tracker
	kind    typed.ParseableType
	// forms are the converters of peers that one write uses: the library compares values of one
	// schema only. nil for a converter that all writes share.
	forms map[*Tracker]*converter
}

var (
	_ library.TypeConverter   = (*converter)(nil)
	_ runtime.ObjectConvertor = (*converter)(nil)
)

func newConverter(t *Tracker, whole *mergeschema.Schema) *converter {
	if whole.Kind == mergeschema.Deduced {
		return &converter{tracker: t, kind: typed.DeducedParseableType}
	}
	types, name := mergeschema.ForStructuredMergeDiff(whole)
	return &converter{tracker: t, kind: typed.ParseableType{Schema: types, TypeRef: smd.TypeRef{NamedType: &name}}}
}

// of returns the converter for objects of an API version: its own, or a peer's.
func (c *converter) of(version schema.GroupVersion) *converter {
	for _, p := range c.tracker.peers {
		if p.options.Kind.GroupVersion() != version {
			continue
		}
		form := c.forms[p.Tracker]
		if form == nil {
			form = p.form()
		}
		if c.forms != nil {
			c.forms[p.Tracker] = form
		}
		return form
	}
	return c
}

// ObjectToTyped implements library.TypeConverter.
func (c *converter) ObjectToTyped(obj runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	c = c.of(obj.GetObjectKind().GroupVersionKind().GroupVersion())
	if free, ok := obj.(*unstructured.Unstructured); ok {
		return c.kind.FromUnstructured(free.UnstructuredContent(), options...)
	}
	return c.kind.FromStructured(obj, options...)
}

// TypedToObject implements library.TypeConverter.
func (c *converter) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	content, ok := value.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("a %s is not an object", c.tracker.options.Kind.Kind)
	}
	if text, ok := content["apiVersion"].(string); ok {
		if version, err := schema.ParseGroupVersion(text); err == nil {
			c = c.of(version)
		}
	}
	obj := c.tracker.options.New()
	if free, ok := obj.(*unstructured.Unstructured); ok {
		free.Object = content
		if settle := c.tracker.options.Settle; settle != nil {
			return free, settle(free)
		}
		return free, nil
	}
	text, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode what was merged: %w", err)
	}
	return obj, decode(text, obj)
}

// Default implements runtime.ObjectDefaulter.
func (c *converter) Default(obj runtime.Object) {
	if typed, ok := obj.(core.Object); ok && c.tracker.options.Default != nil {
		c.tracker.options.Default(typed)
	}
}

// New implements runtime.ObjectCreater.
func (c *converter) New(schema.GroupVersionKind) (runtime.Object, error) {
	obj := c.tracker.options.New()
	obj.GetObjectKind().SetGroupVersionKind(c.tracker.options.Kind)
	return obj, nil
}

func decode(text []byte, into runtime.Object) error {
	if err := quantity.Check(text, into); err != nil {
		return err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, into); err != nil {
		return fmt.Errorf("decode %T: %w", into, err)
	}
	return nil
}
