package server

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/discovery"
	"kctl/apiserver/internal/filters"
	"kctl/apiserver/internal/handlers"
	"kctl/apiserver/internal/openapi"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/reviews"
	"kctl/proto/core"
)

// surface is what clients see of the server: its paths, the filters before them, and
// the description of the API.
type surface struct {
	*process
	objects  *objects
	api      *api
	access   *access
	policy   *policy
	stamps   *stamps
	endpoint *endpoint

	meter     *handlers.Meter
	encodings *handlers.Encodings // of what built-in and custom resources' clients get
	drain     *filters.Drain

	creatable []handlers.CreateOnly
	described []discovery.Resource  // the built-in resources, as discovery has them
	builtin   []schema.GroupVersion // theirs
	documents *openapi.Handler
}

func newSurface(a *api, access *access, policy *policy, stamps *stamps, endpoint *endpoint) *surface {
	creatable := creatableIn(a, access)
	resources, created := describe(a.served, creatable)
	return &surface{
		process: a.process, objects: a.objects, api: a, access: access, policy: policy, stamps: stamps, endpoint: endpoint,
		meter: handlers.NewMeter(a.metrics), encodings: handlers.NewEncodings(), drain: filters.NewDrain(),
		creatable: creatable, described: resources, builtin: groupVersions(resources),
		documents: openapi.New(a.served, created, openAPIRelease(), a.clock.Now()).Follow(described{a.objects.more()}),
	}
}

// creatableIn are the served resources that can only be created.
func creatableIn(a *api, access *access) []handlers.CreateOnly {
	bindings, bind := a.objects.resources.Bindings()
	all := append([]handlers.CreateOnly{{Resource: bindings, Subresource: bind}}, reviews.Served(reviews.Options{
		Tokens: access.identities.Tokens, Authorizer: access.authorizer, Rules: access.authorizer, Clock: a.clock,
	})...)
	return slices.DeleteFunc(all, func(c handlers.CreateOnly) bool {
		return !a.options.Operation.RuntimeConfig.Serves(c.GVK().GroupVersion())
	})
}

// describe returns the built-in resources' discovery, and those of them that can only
// be created.
func describe(served []registry.Served, creatable []handlers.CreateOnly) (described []discovery.Resource, created []core.Resource) {
	for _, c := range creatable {
		described = append(described, discovery.Resource{
			Info: registry.Info{Resource: c.Resource, Singular: strings.ToLower(c.Kind)}, Verbs: []string{"create"},
		})
	}
	for _, s := range served {
		described = append(described, discovery.Describe(s))
	}
	for _, r := range described {
		if slices.Equal(r.Verbs, []string{"create"}) {
			created = append(created, r.Resource)
		}
	}
	return described, created
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

// handling are the handlers' options, for built-in and custom resources alike.
func (s *surface) handling() handlers.Options {
	return handlers.Options{
		Admission: s.policy.admission.Chain, Authorizer: s.access.authorizer, MaxBody: s.options.MaxRequestBodyBytes,
		WatchTime: time.Duration(s.options.MinRequestTimeout) * time.Second, Meter: s.meter,
		Conversions: s.objects.resources.Options().Conversions, Encodings: s.encodings, Clock: s.clock, Logger: s.logger,
	}
}
