package server

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/aggregation"
	"kctl/apiserver/internal/discovery"
)

// This file connects the APIs of other servers.

func (s *Server) newAggregator() (*aggregation.Aggregator, error) {
	o := s.options.Aggregation
	return aggregation.New(aggregation.Options{
		Store: s.resources.APIServices, Services: s.resources.Services, EndpointSlices: s.resources.EndpointSlices,
		CertFile: o.ProxyCertFile, KeyFile: o.ProxyKeyFile, ToEndpoints: o.ToEndpoints,
		Draining: s.draining, Metrics: s.metrics, Clock: s.clock, Logger: s.logger,
	})
}

// followDefinitions maintains the APIServices of custom resources.
func (s *Server) followDefinitions(ctx context.Context) error {
	return s.aggregator.Follow(ctx, s.definitions)
}

// groupVersions are those of the built-in resources.
func groupVersions(served []discovery.Resource) []schema.GroupVersion {
	var out []schema.GroupVersion
	for _, r := range served {
		if gv := r.GVR().GroupVersion(); !slices.Contains(out, gv) {
			out = append(out, gv)
		}
	}
	return out
}
