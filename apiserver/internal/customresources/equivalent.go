package customresources

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/proto/core"
)

// Equivalent are the other served versions of a custom resource, in its
// definition's order; none if r is not a custom resource.
func (d *Definitions) Equivalent(r core.Resource) []core.Resource {
	e := d.snapshot().served[r.GVR()]
	if e == nil {
		return nil
	}
	var others []core.Resource
	for _, v := range e.versions {
		if v.served && v.name != r.Version {
			others = append(others, e.resource(v.name))
		}
	}
	return others
}

// Convert returns a custom object in another version of its definition, without
// changing its input.
func (d *Definitions) Convert(ctx context.Context, obj core.Object, to core.Resource) (core.Object, error) {
	none := fmt.Errorf("a %s has no form of %s", obj.GetObjectKind().GroupVersionKind(), to.GVK())
	o, ok := obj.(*object)
	e := d.snapshot().served[to.GVR()]
	if !ok || e == nil || o.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: to.Group, Kind: to.Kind}) {
		return nil, none
	}
	if _, err := e.store.served(e, to.Version); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	form := e.store.versions[to.Version]
	if form == nil || e.store.converter.versionOf(o) == nil {
		return nil, none
	}
	return e.store.converter.convert(ctx, form, o)
}
