package managedfields

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	library "k8s.io/apimachinery/pkg/util/managedfields"

	"kctl/apiserver/internal/shape"
	"kctl/proto/core"
)

// Convert makes an object of one kind one of another.
type Convert func(core.Object) (core.Object, error)

// peer is another kind as which the same objects are had.
type peer struct {
	*Tracker
	to Convert
}

// Form returns the Tracker of another kind as which the objects of t are had:
// each understands the entries that the other one has written. It must be
// called before t is used.
func (t *Tracker) Form(kind schema.GroupVersionKind, newKind func() core.Object, defaults func(core.Object), show, take Convert) *Tracker {
	o := t.options
	o.Kind, o.New, o.Default = kind, newKind, defaults
	o.Shape = func() *shape.Shape { return shape.Of(reflect.TypeOf(newKind())) }
	form := New(o)
	t.peers = append(t.peers, peer{form, kindSet(kind, show)})
	form.peers = append(form.peers, peer{t, kindSet(t.options.Kind, take)})
	return form
}

func kindSet(kind schema.GroupVersionKind, convert Convert) Convert {
	return func(in core.Object) (core.Object, error) {
		out, err := convert(in)
		if err == nil {
			out.GetObjectKind().SetGroupVersionKind(kind)
		}
		return out, err
	}
}

// ConvertToVersion implements runtime.ObjectConvertor. A version that nobody
// knows is one in which no field has an owner.
func (c *converter) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	from := in.GetObjectKind().GroupVersionKind()
	to, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{from})
	if ok && to == from || c.tracker.options.Custom {
		return in, nil
	}
	object, ok := in.(core.Object)
	if !ok {
		return nil, fmt.Errorf("no conversion of a %T", in)
	}
	own := c.tracker.options.Kind
	for _, p := range c.tracker.peers {
		into, known := target.KindForGroupVersionKinds([]schema.GroupVersionKind{p.options.Kind, own})
		switch {
		case !known:
		case from == own && into == p.options.Kind:
			return p.to(object)
		case from == p.options.Kind && into == own:
			return p.back(own)(object)
		}
	}
	return nil, runtime.NewNotRegisteredErrForTarget(from.Kind, reflect.TypeOf(in), target)
}

// back is how objects of p become those of a kind that p is a peer of.
func (p peer) back(own schema.GroupVersionKind) Convert {
	for _, other := range p.peers {
		if other.options.Kind == own {
			return other.to
		}
	}
	return func(in core.Object) (core.Object, error) { return nil, fmt.Errorf("no way back from a %T", in) }
}

// Convert implements runtime.ObjectConvertor.
func (*converter) Convert(in, _, _ any) error { return fmt.Errorf("no conversion of a %T", in) }

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (*converter) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Replicas says where the versions of a kind have the number that Scale is
// about; nil for a version that has no Scale.
type Replicas = library.ResourcePathMappings

// ToScale is the managedFields of an object's Scale: what those of the object,
// of the version, say of its replicas.
func ToScale(entries []metav1.ManagedFieldsEntry, version schema.GroupVersion, r Replicas) ([]metav1.ManagedFieldsEntry, error) {
	return library.NewScaleHandler(entries, version, r).ToSubresource()
}

// FromScale is an object's managedFields after those of its Scale have become
// scale.
func FromScale(entries, scale []metav1.ManagedFieldsEntry, version schema.GroupVersion, r Replicas) ([]metav1.ManagedFieldsEntry, error) {
	return library.NewScaleHandler(entries, version, r).ToParent(scale)
}
