// Package equivalent knows which resources show the same objects (Kubernetes
// docs, "Dynamic Admission Control", "Matching requests: matchPolicy"), and
// converts objects between them.
//
// Users' webhooks and policies ask it; it stores nothing.
package equivalent

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/customresources"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// Resources knows in which other API versions and groups the objects of a
// resource can be had: those of the views on it, and the versions of custom
// resources. It is safe for concurrent use.
type Resources struct {
	served func() map[schema.GroupVersionKind]registry.Resource
	others func() map[core.Resource][]core.Resource
	// custom are there when the first request comes.
	custom func() *customresources.Definitions
}

// New looks at what is served, and at the custom resources, when it is first
// asked.
func New(served func() []registry.Served, custom func() *customresources.Definitions) *Resources {
	f := &Resources{custom: custom}
	f.served = sync.OnceValue(func() map[schema.GroupVersionKind]registry.Resource {
		out := map[schema.GroupVersionKind]registry.Resource{}
		for _, r := range served() {
			out[r.Resource.Info().GVK()] = r.Resource
		}
		return out
	})
	f.others = sync.OnceValue(func() map[core.Resource][]core.Resource {
		in := map[registry.Resource][]core.Resource{}
		for _, r := range served() {
			in[storedIn(r.Resource)] = append(in[storedIn(r.Resource)], r.Resource.Info().Resource)
		}
		out := map[core.Resource][]core.Resource{}
		for _, same := range in {
			for i, r := range same {
				out[r] = append(out[r], same[:i]...)
				out[r] = append(out[r], same[i+1:]...)
			}
		}
		return out
	})
	return f
}

// storedIn is where the objects of a resource are, which may be itself.
func storedIn(r registry.Resource) registry.Resource {
	if view, ok := r.(*registry.View); ok {
		return view.Of
	}
	return r
}

// Resource finds what is served under a kind.
func (f *Resources) Resource(kind schema.GroupVersionKind) (registry.Resource, bool) {
	if r, ok := f.served()[kind]; ok {
		return r, true
	}
	return f.customOf(kind)
}

// Equivalent implements match.Versions.
func (f *Resources) Equivalent(r core.Resource) []core.Resource {
	if others := f.others()[r]; others != nil {
		return others
	}
	return f.custom().Equivalent(r)
}

// Convert implements match.Versions.
func (f *Resources) Convert(ctx context.Context, obj core.Object, to core.Resource) (core.Object, error) {
	kind := obj.GetObjectKind().GroupVersionKind()
	from, target := f.served()[kind], f.served()[to.GVK()]
	if from == nil && target == nil {
		return f.custom().Convert(ctx, obj, to)
	}
	if from == nil || target == nil || storedIn(from) != storedIn(target) {
		return nil, fmt.Errorf("a %s has no form of %s", kind, to.GVK())
	}
	if view, ok := from.(*registry.View); ok {
		stored := view.Of.New()
		if err := view.Take(obj, stored); err != nil {
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

// customOf finds the custom resource whose objects are of a kind.
func (f *Resources) customOf(kind schema.GroupVersionKind) (registry.Resource, bool) {
	for _, info := range f.custom().Infos() {
		if info.GVK() == kind {
			served, _, ok, err := f.custom().Lookup(context.Background(), info.GVR())
			return served.Resource, ok && err == nil
		}
	}
	return nil, false
}
