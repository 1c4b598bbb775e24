package chain

import (
	"context"

	"kctl/apiserver/internal/admission/condition"
	"kctl/apiserver/internal/admission/lookup"
	"kctl/apiserver/internal/admission/manifest"
	"kctl/apiserver/internal/admission/match"
	"kctl/apiserver/internal/admission/plugins"
	"kctl/apiserver/internal/admission/policy"
	"kctl/apiserver/internal/admission/webhook"
	"kctl/apiserver/internal/configfile"
	"kctl/apiserver/internal/webhookclient"
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

func newUserRules(o Options, s plugins.Settings) (*userRules, error) {
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
	toMutating, err := accessOf(webhook.MutatingName, o, s)
	if err != nil {
		return nil, err
	}
	toValidating, err := accessOf(webhook.ValidatingName, o, s)
	if err != nil {
		return nil, err
	}
	mutating := webhook.FollowMutating(r.MutatingWebhooks, toMutating, o.Clock, o.Logger)
	validating := webhook.FollowValidating(r.ValidatingWebhooks, toValidating, o.Clock, o.Logger)
	return &userRules{
		mutatingWebhooks:   webhook.NewMutating(mutating, surroundings),
		validatingWebhooks: webhook.NewValidating(validating, surroundings),
		mutatingPolicies:   policy.NewMutating(mutates, p),
		validatingPolicies: policy.NewValidating(validates, p),
		followers:          []follower{mutating, validating, mutates, validates},
		manifests: []manifest.Plugin{
			{Name: webhook.MutatingName, Directory: webhook.Directory, Kinds: []string{"MutatingWebhookConfiguration"}, Apply: mutating.SetStatic},
			{
				Name: webhook.ValidatingName, Directory: webhook.Directory, Kinds: []string{"ValidatingWebhookConfiguration"},
				Apply: validating.SetStatic,
			},
			{
				Name: policy.MutatingName, Directory: policy.Directory,
				Kinds: []string{"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}, Apply: mutates.SetStatic,
			},
			{Name: policy.ValidatingName, Directory: policy.Directory, Kinds: []string{"ValidatingAdmissionPolicy",
				"ValidatingAdmissionPolicyBinding"}, Apply: validates.SetStatic},
		},
	}, nil
}

// accessOf is how a plugin for webhooks reaches them: with the credentials that its
// configuration names, if it is enabled.
func accessOf(plugin string, o Options, s plugins.Settings) (webhookclient.Access, error) {
	access := o.Webhooks
	if !s.Enabled(plugin) {
		return access, nil
	}
	var err error
	access.Credentials, err = webhook.Credentials(s.Files, plugin, s.OnFileProblem)
	return access, err
}

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
			return nil, err
		}
		if follower != nil {
			files = append(files, follower)
		}
	}
	return files, nil
}
