// Package equivalent knows which resources show the same objects (Kubernetes
// docs, "Dynamic Admission Control", "Matching requests: matchPolicy"), and
// converts objects between them.
//
// Users' webhooks and policies ask it; it stores nothing.
package equivalent

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/customresources"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// Custom knows the custom resources, which come and go: customresources.Definitions.
type Custom interface {
	Infos() []customresources.Info
	Lookup(ctx context.Context, gvr schema.GroupVersionResource) (served registry.Served, warning string, ok bool, err error)
	Equivalent(r core.Resource) []core.Resource
	Convert(ctx context.Context, obj core.Object, to core.Resource) (core.Object, error)
}

// Resources knows in which other API versions and groups the objects of a
// resource are served: those of its views, and the versions of custom
// resources. It is safe for concurrent use.
type Resources struct {
	served map[schema.GroupVersionKind]registry.Resource
	others map[core.Resource][]core.Resource
	custom Custom
}

// New returns Resources for the built-in resources, which asks custom about the others.
func New(builtin []registry.Served, custom Custom) *Resources {
	f := &Resources{served: map[schema.GroupVersionKind]registry.Resource{}, others: map[core.Resource][]core.Resource{}, custom: custom}
	together := map[registry.Resource][]core.Resource{}
	for _, r := range builtin {
		info, stored := r.Resource.Info(), storedIn(r.Resource)
		f.served[info.GVK()] = r.Resource
		together[stored] = append(together[stored], info.Resource)
	}
	for _, same := range together {
		for i, r := range same {
			f.others[r] = slices.Concat(same[:i], same[i+1:])
		}
	}
	return f
}

// storedIn returns the resource that stores a resource's objects, which may be itself.
func storedIn(r registry.Resource) registry.Resource {
	if view, ok := r.(*registry.View); ok {
		return view.Stored
	}
	return r
}

// Resource returns the resource that is served for a kind.
func (f *Resources) Resource(kind schema.GroupVersionKind) (registry.Resource, bool) {
	if r, ok := f.served[kind]; ok {
		return r, true
	}
	return f.customOf(kind)
}

// Equivalent implements match.Versions.
func (f *Resources) Equivalent(r core.Resource) []core.Resource {
	if others := f.others[r]; others != nil {
		return others
	}
	return f.custom.Equivalent(r)
}

// Convert implements match.Versions.
func (f *Resources) Convert(ctx context.Context, obj core.Object, to core.Resource) (core.Object, error) {
	kind := obj.GetObjectKind().GroupVersionKind()
	from, target := f.served[kind], f.served[to.GVK()]
	if from == nil && target == nil {
		return f.custom.Convert(ctx, obj, to)
	}
	if from == nil || target == nil || storedIn(from) != storedIn(target) {
		return nil, fmt.Errorf("a %s has no form of %s", kind, to.GVK())
	}
	if view, ok := from.(*registry.View); ok {
		stored := view.Stored.New()
		if err := view.WriteBack(obj, stored); err != nil {
			return nil, err
		}
		obj = stored
	}
	if view, ok := target.(*registry.View); ok {
		shown, err := view.Show(obj)
		if err != nil {
			return nil, err
		}
		obj = shown
	}
	obj.GetObjectKind().SetGroupVersionKind(to.GVK())
	return obj, nil
}

// customOf returns the custom resource of a kind.
func (f *Resources) customOf(kind schema.GroupVersionKind) (registry.Resource, bool) {
	for _, info := range f.custom.Infos() {
		if info.GVK() == kind {
			served, _, ok, err := f.custom.Lookup(context.Background(), info.GVR())
			return served.Resource, ok && err == nil
		}
	}
	return nil, false
}
