package server

import (
	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/configuration"
	"kctl/apiserver/internal/admission/plugins"
)

// plugins makes the chain of the plugins that the flags ask for.
func (s *Server) plugins() (*admission.Chain, error) {
	files, err := configuration.Load(s.options.AdmissionControlConfigFile)
	if err != nil {
		return nil, err
	}
	return plugins.Chain(plugins.Objects{
		Namespaces: s.resources.Namespaces, ServiceAccounts: s.resources.ServiceAccounts, Pods: s.resources.Pods,
		RuntimeClasses: s.resources.RuntimeClasses, PriorityClasses: s.resources.PriorityClasses, DefaultPriority: s.priorities,
	}, plugins.Settings{
		Enable: s.options.EnableAdmissionPlugins, Disable: s.options.DisableAdmissionPlugins,
		Files: files, Clock: s.clock,
	})
}
