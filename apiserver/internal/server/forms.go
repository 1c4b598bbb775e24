package server

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/customresources"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// forms knows in which other forms the objects of a resource can be had: those
// of the views on it, and the versions of custom resources.
type forms struct {
	served func() map[schema.GroupVersionKind]registry.Resource
	others func() map[core.Resource][]core.Resource
	custom func(kind schema.GroupVersionKind) (registry.Resource, bool)
	// definitions are there when the first request comes.
	definitions func() *customresources.Definitions
}

// newForms looks at what is served when it is first asked.
func (s *Server) newForms() *forms {
	f := &forms{custom: s.customOf, definitions: func() *customresources.Definitions { return s.definitions }}
	f.served = sync.OnceValue(func() map[schema.GroupVersionKind]registry.Resource {
		out := map[schema.GroupVersionKind]registry.Resource{}
		for _, r := range s.served {
			out[r.Resource.Info().GVK()] = r.Resource
		}
		return out
	})
	f.others = sync.OnceValue(func() map[core.Resource][]core.Resource {
		in := map[registry.Resource][]core.Resource{}
		for _, r := range s.served {
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
func (f *forms) Resource(kind schema.GroupVersionKind) (registry.Resource, bool) {
	if r, ok := f.served()[kind]; ok {
		return r, true
	}
	return f.custom(kind)
}

// Equivalent implements match.Versions.
func (f *forms) Equivalent(r core.Resource) []core.Resource {
	if others := f.others()[r]; others != nil {
		return others
	}
	return f.definitions().Equivalent(r)
}

// Convert implements match.Versions.
func (f *forms) Convert(ctx context.Context, obj core.Object, to core.Resource) (core.Object, error) {
	kind := obj.GetObjectKind().GroupVersionKind()
	from, target := f.served()[kind], f.served()[to.GVK()]
	if from == nil && target == nil {
		return f.definitions().Convert(ctx, obj, to)
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

// storedNow finds an object of a built-in resource.
func (s *Server) storedNow(ctx context.Context, r core.Resource, namespace, name string) (core.Object, error) {
	for _, served := range s.served {
		if served.Resource.Info().GVR() == r.GVR() {
			return lookUp[core.Object](ctx, served.Resource, namespace, name)
		}
	}
	return nil, fmt.Errorf("%s are not served", r.Name)
}
