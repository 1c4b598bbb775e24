package admissioncontrol

import (
	"context"
	"fmt"

	"kctl/apiserver/internal/admission/condition"
	"kctl/apiserver/internal/admission/lookup"
	"kctl/apiserver/internal/admission/manifest"
	"kctl/apiserver/internal/admission/match"
	"kctl/apiserver/internal/admission/plugins"
	"kctl/apiserver/internal/admission/policy"
	"kctl/apiserver/internal/admission/webhook"
	"kctl/apiserver/internal/configfile"
	"kctl/proto/core"
)

// userRules are the webhooks and policies that users have registered.
type userRules struct {
	mutatingWebhooks   *webhook.Mutating
	validatingWebhooks *webhook.Validating
	mutatingPolicies   *policy.Mutating
	validatingPolicies *policy.Validating

	followers []follower
	manifests []manifest.Plugin
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
		manifests: []manifest.Plugin{
			{Name: webhook.MutatingName, Kind: webhooksKind, Kinds: []string{"MutatingWebhookConfiguration"}, Apply: mutating.SetStatic},
			{Name: webhook.ValidatingName, Kind: webhooksKind, Kinds: []string{"ValidatingWebhookConfiguration"}, Apply: validating.SetStatic},
			{Name: policy.MutatingName, Kind: "MutatingAdmissionPolicyConfiguration", Kinds: []string{"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}, Apply: mutates.SetStatic},
			{Name: policy.ValidatingName, Kind: "ValidatingAdmissionPolicyConfiguration", Kinds: []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}, Apply: validates.SetStatic},
		},
	}
}

// webhooksKind is the kind of the configuration of both plugins for webhooks.
const webhooksKind = "WebhookAdmissionConfiguration"

// followManifests applies the webhooks and policies in the directories that the configuration of
// enabled plugins names, and returns what applies changes.
func (r *userRules) followManifests(o Options, s plugins.Settings) ([]*configfile.Follower, error) {
	var files []*configfile.Follower
	for _, p := range r.manifests {
		if !s.Enabled(p.Name) {
			continue
		}
		follower, err := p.Follow(manifest.Options{Files: s.Files, Metrics: o.Metrics, Clock: o.Clock, Logger: o.Logger})
		if err != nil {
			return nil, fmt.Errorf("admission configuration: %w", err)
		}
		if follower != nil {
			files = append(files, follower)
		}
	}
	return files, nil
}
