package admissioncontrol

import (
	"context"

	"kctl/apiserver/internal/admission/condition"
	"kctl/apiserver/internal/admission/lookup"
	"kctl/apiserver/internal/admission/match"
	"kctl/apiserver/internal/admission/policy"
	"kctl/apiserver/internal/admission/webhook"
	"kctl/proto/core"
)

// userRules are the webhooks and policies that users have registered.
type userRules struct {
	mutatingWebhooks   *webhook.Mutating
	validatingWebhooks *webhook.Validating
	mutatingPolicies   *policy.Mutating
	validatingPolicies *policy.Validating

	followers []follower
}

func newUserRules(o Options) *userRules {
	namespaces := lookup.New[*core.Namespace](o.Resources.Namespaces)
	cluster := match.Cluster{Versions: o.Forms, Namespace: func(ctx context.Context, name string) (*core.Namespace, error) {
		return namespaces.Get(ctx, "", name)
	}}
	surroundings := condition.Surroundings{
		Cluster: cluster, Authorizer: o.Authorizer, Metrics: o.Metrics, Clock: o.Clock, Logger: o.Logger,
	}
	p := policy.Options{Surroundings: surroundings, Resources: o.Forms.Resource}
	r := o.Resources
	mutates := policy.FollowMutating(r.MutatingPolicies, r.MutatingBindings, o.Clock, o.Logger)
	validates := policy.FollowValidating(r.ValidatingPolicies, r.ValidatingBindings, o.Clock, o.Logger)
	mutating := webhook.FollowMutating(r.MutatingWebhooks, o.Services, o.Clock, o.Logger)
	validating := webhook.FollowValidating(r.ValidatingWebhooks, o.Services, o.Clock, o.Logger)
	return &userRules{
		mutatingWebhooks:   webhook.NewMutating(mutating, surroundings),
		validatingWebhooks: webhook.NewValidating(validating, surroundings),
		mutatingPolicies:   policy.NewMutating(mutates, p),
		validatingPolicies: policy.NewValidating(validates, p),
		followers:          []follower{mutating, validating, mutates, validates},
	}
}
