package server

import (
	"slices"

	"kctl/apiserver/internal/handlers"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/reviews"
)

// choose leaves of all resources those whose versions are to be served. The
// server itself has the others nevertheless.
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

// creatable are what is only ever created.
func (s *Server) creatable() []handlers.Creatable {
	bindings, bind := s.resources.Bindings()
	return append([]handlers.Creatable{{Resource: bindings, Subresource: bind}},
		reviews.Served(reviews.Options{Tokens: s.identities.tokens, Authorizer: s.authorizer, Rules: s.authorizer, Clock: s.clock})...)
}
