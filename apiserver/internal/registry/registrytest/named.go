package registrytest

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// Named holds read-only objects of one resource by name, ignoring namespaces.
type Named struct {
	registry.Resource // nil: methods that are not implemented below panic
	resource          core.Resource
	objects           map[string]core.Object
}

// NewNamed returns objects under the given names, which they need not contain.
func NewNamed(resource core.Resource, objects map[string]core.Object) Named {
	return Named{resource: resource, objects: objects}
}

// Get implements registry.Resource.
func (n Named) Get(_ context.Context, _, name, _ string) (registry.Encoded, error) {
	if _, ok := n.objects[name]; !ok {
		return registry.Encoded{}, apierrors.NewNotFound(n.resource.GVR().GroupResource(), name)
	}
	return registry.Encoded{JSON: []byte(name)}, nil
}

// List implements registry.Resource, for label selectors.
func (n Named) List(_ context.Context, _ string, o registry.ListOptions) (registry.List, error) {
	var list registry.List
	for name, obj := range n.objects {
		if o.Labels.Matches(labels.Set(obj.GetLabels())) {
			list.Items = append(list.Items, registry.Encoded{JSON: []byte(name)})
		}
	}
	return list, nil
}

// Decode implements registry.Resource, for what Get and List returned.
func (n Named) Decode(e registry.Encoded) (core.Object, error) { return n.objects[string(e.JSON)], nil }
