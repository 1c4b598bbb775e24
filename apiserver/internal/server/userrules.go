package server

import (
	"context"

	"kctl/apiserver/internal/admission/condition"
	"kctl/apiserver/internal/admission/lookup"
	"kctl/apiserver/internal/admission/match"
	"kctl/apiserver/internal/admission/policy"
	"kctl/apiserver/internal/admission/webhook"
	"kctl/apiserver/internal/audit"
	"kctl/apiserver/internal/customresources"
	"kctl/apiserver/internal/housekeeping"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/server/equivalent"
	"kctl/proto/core"
)

// userRules are what users have registered to take part in admission.
type userRules struct {
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

func (s *Server) newUserRules() *userRules {
	namespaces := lookup.New[*core.Namespace](s.resources.Namespaces)
	forms := equivalent.New(func() []registry.Served { return s.served }, func() *customresources.Definitions { return s.definitions })
	cluster := match.Cluster{Versions: forms, Namespace: func(ctx context.Context, name string) (*core.Namespace, error) {
		return namespaces.Get(ctx, "", name)
	}}
	o := condition.Surroundings{
		Cluster: cluster, Authorizer: s.authorizer, Annotate: audit.Annotate, Metrics: s.metrics, Clock: s.clock, Logger: s.logger,
	}
	p := policy.Options{Surroundings: o, Resources: forms.Resource}
	mutates := policy.FollowMutating(s.resources.MutatingPolicies, s.resources.MutatingBindings, s.clock, s.logger)
	validates := policy.FollowValidating(s.resources.ValidatingPolicies, s.resources.ValidatingBindings, s.clock, s.logger)
	mutating := webhook.FollowMutating(s.resources.MutatingWebhooks, s.services(), s.clock, s.logger)
	validating := webhook.FollowValidating(s.resources.ValidatingWebhooks, s.services(), s.clock, s.logger)
	return &userRules{
		mutatingWebhooks:   webhook.NewMutating(mutating, o),
		validatingWebhooks: webhook.NewValidating(validating, o),
		mutatingPolicies:   policy.NewMutating(mutates, p),
		validatingPolicies: policy.NewValidating(validates, p),
		followers:          []follower{mutating, validating, mutates, validates},
	}
}

func (r *userRules) loops() []housekeeping.Loop {
	loops := make([]housekeeping.Loop, 0, len(r.followers))
	for _, f := range r.followers {
		loops = append(loops, f.Run)
	}
	return loops
}

// synced are closed when all that is stored has been read.
func (r *userRules) synced() []<-chan struct{} {
	synced := make([]<-chan struct{}, 0, len(r.followers))
	for _, f := range r.followers {
		synced = append(synced, f.Synced())
	}
	return synced
}
