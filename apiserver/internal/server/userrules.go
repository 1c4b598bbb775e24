package server

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"

	"kctl/apiserver/internal/admission/lookup"
	"kctl/apiserver/internal/admission/match"
	"kctl/apiserver/internal/admission/policy"
	"kctl/apiserver/internal/admission/webhook"
	"kctl/apiserver/internal/audit"
	"kctl/apiserver/internal/housekeeping"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// rulesOfUsers are what users have registered to take part in admission.
type rulesOfUsers struct {
	mutatingWebhooks   *webhook.Mutating
	validatingWebhooks *webhook.Validating
	mutatingPolicies   *policy.Mutating
	validatingPolicies *policy.Validating

	followers []follower
}

type follower interface {
	Run(ctx context.Context) error
	Synced() <-chan struct{}
}

func (s *Server) followUsers() *rulesOfUsers {
	namespaces := lookup.New[*core.Namespace](s.resources.Namespaces)
	forms := s.newForms()
	cluster := match.Cluster{Versions: forms, Namespace: func(ctx context.Context, name string) (*core.Namespace, error) {
		return namespaces.Get(ctx, "", name)
	}}
	o := webhook.Options{
		Cluster: cluster, Authorizer: s.authorizer, Annotate: audit.Annotate,
		Services: services{services: lookup.New[*corev1.Service](s.resources.Services), slices: s.resources.EndpointSlices},
		Metrics:  s.metrics, Clock: s.clock, Logger: s.logger,
	}
	p := policy.Options{
		Cluster: cluster, Resources: forms.Resource, Authorizer: s.authorizer, Annotate: audit.Annotate,
		Metrics: s.metrics, Clock: s.clock, Logger: s.logger,
	}
	mutates := policy.FollowMutating(s.resources.MutatingPolicies, s.resources.MutatingBindings, s.clock, s.logger)
	validates := policy.FollowValidating(s.resources.ValidatingPolicies, s.resources.ValidatingBindings, s.clock, s.logger)
	mutating := webhook.FollowMutating(s.resources.MutatingWebhooks, s.clock, s.logger)
	validating := webhook.FollowValidating(s.resources.ValidatingWebhooks, s.clock, s.logger)
	return &rulesOfUsers{
		mutatingWebhooks:   webhook.NewMutating(mutating, o),
		validatingWebhooks: webhook.NewValidating(validating, o),
		mutatingPolicies:   policy.NewMutating(mutates, p),
		validatingPolicies: policy.NewValidating(validates, p),
		followers:          []follower{mutating, validating, mutates, validates},
	}
}

func (r *rulesOfUsers) loops() []housekeeping.Loop {
	loops := make([]housekeeping.Loop, 0, len(r.followers))
	for _, f := range r.followers {
		loops = append(loops, f.Run)
	}
	return loops
}

// wait waits until all that is stored has been read.
func (r *rulesOfUsers) wait(ctx context.Context) bool {
	for _, f := range r.followers {
		if !wait(ctx, f.Synced()) {
			return false
		}
	}
	return true
}

// services finds what is behind the services that webhooks name.
type services struct {
	services *lookup.Objects[*corev1.Service]
	slices   *registry.Store[*discoveryv1.EndpointSlice]
}

func (s services) Service(ctx context.Context, namespace, name string) (*corev1.Service, error) {
	return s.services.Get(ctx, namespace, name)
}

func (s services) Slices(ctx context.Context, namespace, name string) ([]*discoveryv1.EndpointSlice, error) {
	slices, _, err := s.slices.ListTyped(ctx, namespace, registry.ListOptions{
		Labels: labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: name}), ResourceVersion: "0",
	})
	return slices, err
}
