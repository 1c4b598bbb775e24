package server

import (
	"context"
	"fmt"
	"slices"

	"kctl/apiserver/internal/handlers"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/reviews"
	"kctl/proto/core"
)

// choose returns the resources whose versions are to be served. The server
// itself has the others nevertheless.
func (s *Server) choose(all []registry.Served) error {
	there := slices.Clone(reviews.Versions)
	for _, served := range all {
		there = append(there, served.Resource.Info().GVK().GroupVersion())
	}
	versions := s.options.Operation.RuntimeConfig
	s.served = slices.DeleteFunc(all, func(served registry.Served) bool {
		return !versions.Serves(served.Resource.Info().GVK().GroupVersion())
	})
	return versions.Missing(there)
}

// creatable are the resources that can only be created.
func (s *Server) creatable() []handlers.CreateOnly {
	bindings, bind := s.resources.Bindings()
	return append([]handlers.CreateOnly{{Resource: bindings, Subresource: bind}},
		reviews.Served(reviews.Options{Tokens: s.identities.Tokens, Authorizer: s.authorizer, Rules: s.authorizer, Clock: s.clock})...)
}

// builtinStores are the stores of the built-in resources. Those that only show
// another's objects have none of their own.
func (s *Server) builtinStores() []registry.Resource {
	var stores []registry.Resource
	for _, served := range s.served {
		if info := served.Resource.Info(); info.StoredAs == info.GVK() {
			stores = append(stores, served.Resource)
		}
	}
	return stores
}

// stores are the stores of all resources that are served now.
func (s *Server) stores() []registry.Resource {
	custom, _ := s.definitions.Resources()
	return append(s.builtinStores(), custom...)
}

// storedNow reads an object of a built-in resource.
func (s *Server) storedNow(ctx context.Context, r core.Resource, namespace, name string) (core.Object, error) {
	for _, served := range s.served {
		if served.Resource.Info().GVR() == r.GVR() {
			return registry.Find[core.Object](ctx, served.Resource, namespace, name)
		}
	}
	return nil, fmt.Errorf("%s are not served", r.Name)
}
