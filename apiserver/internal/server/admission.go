package server

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/configuration"
	"kctl/apiserver/internal/admission/lookup"
	"kctl/apiserver/internal/admission/plugins"
	"kctl/apiserver/internal/housekeeping"
)

// rulesOfSpaces are the rules that hold in namespaces, which admission plugins
// ask for at every turn.
type rulesOfSpaces struct {
	limits *lookup.Scoped[*corev1.LimitRange]
}

func (s *Server) followRules() *rulesOfSpaces {
	return &rulesOfSpaces{
		limits: lookup.NewScoped[*corev1.LimitRange](s.resources.LimitRanges, s.clock, s.logger),
	}
}

func (r *rulesOfSpaces) loops() []housekeeping.Loop {
	return []housekeeping.Loop{r.limits.Run}
}

// wait waits until all that is stored has been read.
func (r *rulesOfSpaces) wait(ctx context.Context) bool {
	return wait(ctx, r.limits.Synced())
}

// plugins makes the chain of the plugins that the flags ask for.
func (s *Server) plugins() (*admission.Chain, error) {
	files, err := configuration.Load(s.options.AdmissionControlConfigFile)
	if err != nil {
		return nil, err
	}
	s.spaceRules = s.followRules()
	s.userRules = s.followUsers()
	return plugins.Chain(plugins.Objects{
		Namespaces: s.resources.Namespaces, ServiceAccounts: s.resources.ServiceAccounts, Pods: s.resources.Pods,
		RuntimeClasses: s.resources.RuntimeClasses, PriorityClasses: s.resources.PriorityClasses, DefaultPriority: s.priorities,
		LimitRanges:      s.spaceRules.limits,
		Authorizer:       s.authorizer,
		MutatingWebhooks: s.userRules.mutatingWebhooks, ValidatingWebhooks: s.userRules.validatingWebhooks,
	}, plugins.Settings{
		Enable: s.options.EnableAdmissionPlugins, Disable: s.options.DisableAdmissionPlugins,
		Files: files, Clock: s.clock,
	})
}
