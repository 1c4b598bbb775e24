package managedfields

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	library "k8s.io/apimachinery/pkg/util/managedfields"

	"kctl/apiserver/internal/mergeschema"
	"kctl/proto/core"
)

// Convert converts an object of one kind into another.
type Convert func(core.Object) (core.Object, error)

// peer is another kind as which the same objects are served.
type peer struct {
	*Tracker
	to Convert
	// form converts between the library's values and objects that were converted into that kind.
	form func() *converter
}

// Form returns the Tracker of another kind as which the objects of t are
// served: each understands the entries that the other has written. It must be
// called before t is used.
func (t *Tracker) Form(kind schema.GroupVersionKind, newKind func() core.Object, defaults func(core.Object), show, take Convert) *Tracker {
	o := t.options
	o.Kind, o.New, o.Default = kind, newKind, defaults
	o.Schema = func() *mergeschema.Schema { return mergeschema.Of(reflect.TypeOf(newKind())) }
	form := New(o)
	t.Link(form, show, take)
	return form
}

// Link makes each of two Trackers of the same objects understand the entries that the
// other has written; there converts objects of t into those of other, and back converts
// these. It must be called before either is used.
func (t *Tracker) Link(other *Tracker, there, back Convert) {
	other.joined = t.joined
	t.peers = append(t.peers, t.newPeer(other, there))
	other.peers = append(other.peers, other.newPeer(t, back))
}

// newPeer returns other as a peer of t. A custom kind's version may have fields that another one
// has not. An object of t keeps them on its way into that version and back, since an apply is
// merged there, too, if somebody owns fields there: what is not known there would be lost.
func (t *Tracker) newPeer(other *Tracker, there Convert) peer {
	form := other.converter
	if t.options.Custom {
		form = func() *converter { return t.joined.converter(other, t) }
	}
	return peer{other, kindSet(other.options.Kind, there), form}
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

// ConvertToVersion implements runtime.ObjectConvertor. In an unknown version,
// no field has an owner, but a custom kind's may be one that it no longer has, whose
// fields are taken for those of the version in use.
func (c *converter) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	from := in.GetObjectKind().GroupVersionKind()
	to, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{from})
	if ok && to == from {
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
	if c.tracker.options.Custom {
		return in, nil
	}
	return nil, runtime.NewNotRegisteredErrForTarget(from.Kind, reflect.TypeOf(in), target)
}

// back converts objects of p into the kind of which p is a peer.
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

// Replicas is the path, in each version of a kind, of the number that Scale
// shows; nil for a version without Scale.
type Replicas = library.ResourcePathMappings

// ToScale are the managedFields of an object's Scale: the part of the object's
// that is about its replicas.
func ToScale(entries []metav1.ManagedFieldsEntry, version schema.GroupVersion, r Replicas) ([]metav1.ManagedFieldsEntry, error) {
	return library.NewScaleHandler(entries, version, r).ToSubresource()
}

// FromScale are an object's managedFields after those of its Scale have become
// scale.
func FromScale(entries, scale []metav1.ManagedFieldsEntry, version schema.GroupVersion, r Replicas) ([]metav1.ManagedFieldsEntry, error) {
	return library.NewScaleHandler(entries, version, r).ToParent(scale)
}
