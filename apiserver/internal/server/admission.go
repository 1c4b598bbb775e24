package server

import (
	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/configuration"
	"kctl/apiserver/internal/admission/defaulttoleration"
	"kctl/apiserver/internal/admission/lookup"
	"kctl/apiserver/internal/admission/plugins"
	"kctl/apiserver/internal/housekeeping"
	"kctl/apiserver/internal/quota"
)

// namespaceRules are the rules that hold in namespaces, which admission plugins
// ask for at every turn.
type namespaceRules struct {
	limits *lookup.Scoped[*corev1.LimitRange]
	quotas *lookup.Scoped[*corev1.ResourceQuota]
	usage  *quota.Usage
}

func (s *Server) newNamespaceRules() *namespaceRules {
	r := &namespaceRules{
		limits: lookup.NewScoped[*corev1.LimitRange](s.resources.LimitRanges, s.clock, s.logger),
		quotas: lookup.NewScoped[*corev1.ResourceQuota](s.resources.ResourceQuotas, s.clock, s.logger),
	}
	r.usage = quota.NewUsage(quota.Options{
		Quotas: r.quotas, Store: s.resources.ResourceQuotas, Stores: s.stores, Clock: s.clock,
	})
	return r
}

func (r *namespaceRules) loops() []housekeeping.Loop {
	return []housekeeping.Loop{r.limits.Run, r.quotas.Run}
}

// synced are closed when all that is stored has been read.
func (r *namespaceRules) synced() []<-chan struct{} {
	return []<-chan struct{}{r.limits.Synced(), r.quotas.Synced()}
}

// plugins makes the chain of the plugins that the flags ask for.
func (s *Server) plugins() (*admission.Chain, error) {
	files, err := configuration.Load(s.options.AdmissionControlConfigFile)
	if err != nil {
		return nil, err
	}
	s.namespaceRules = s.newNamespaceRules()
	s.userRules = s.newUserRules()
	return plugins.Chain(plugins.Objects{
		Namespaces: s.resources.Namespaces, ServiceAccounts: s.resources.ServiceAccounts, Pods: s.resources.Pods, Nodes: s.resources.Nodes,
		RuntimeClasses: s.resources.RuntimeClasses, PriorityClasses: s.resources.PriorityClasses, DefaultPriority: s.priorities,
		Claims: s.resources.Claims, Volumes: s.resources.Volumes, CSIDrivers: s.resources.CSIDrivers,
		StorageClasses: s.resources.StorageClasses, IngressClasses: s.resources.IngressClasses,
		LimitRanges:      s.namespaceRules.limits,
		Quotas:           s.namespaceRules.usage,
		QuotaRules:       s.namespaceRules.quotas,
		Authorizer:       s.authorizer,
		Resource:         s.resourceOf,
		MutatingWebhooks: s.userRules.mutatingWebhooks, ValidatingWebhooks: s.userRules.validatingWebhooks,
		MutatingPolicies: s.userRules.mutatingPolicies, ValidatingPolicies: s.userRules.validatingPolicies,
	}, plugins.Settings{
		Enable: s.options.EnableAdmissionPlugins, Disable: s.options.DisableAdmissionPlugins,
		Files: files, Clock: s.clock,
		Tolerations: defaulttoleration.Plugin{NotReadySeconds: s.options.NotReadySeconds, UnreachableSeconds: s.options.UnreachableSeconds},
	})
}
