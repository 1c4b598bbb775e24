package profile

import (
	"fmt"
	"os"
	"slices"
	"time"

	componentbaseconfig "k8s.io/component-base/config/v1alpha1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	"kctl/scheduler/internal/plugins/unsupported"
)

// Effective is the file that would result in the current configuration, for
// people to look at. The extenders' keys are left out.
func (c *Configuration) Effective() *configv1.KubeSchedulerConfiguration {
	file := &configv1.KubeSchedulerConfiguration{
		LeaderElection:        c.LeaderElection,
		DelayCacheUntilActive: c.DelayCache,
		ClientConnection:      componentbaseconfig.ClientConnectionConfiguration{Kubeconfig: c.Kubeconfig},
		DebuggingConfiguration: componentbaseconfig.DebuggingConfiguration{
			EnableProfiling: &c.Profiling, EnableContentionProfiling: &c.ContentionProfiling,
		},
		Profiles: slices.Clone(c.Profiles), Extenders: slices.Clone(c.Extenders),
	}
	file.APIVersion, file.Kind = apiVersion, kind
	initial, most := int64(c.InitialBackoff/time.Second), int64(c.MaxBackoff/time.Second)
	file.PodInitialBackoffSeconds, file.PodMaxBackoffSeconds = &initial, &most
	for i := range file.Profiles {
		file.Profiles[i].Plugins = effectivePlugins(file.Profiles[i].Plugins)
	}
	for i := range file.Extenders {
		if security := file.Extenders[i].TLSConfig; security != nil {
			public := *security
			public.KeyData = nil
			file.Extenders[i].TLSConfig = &public
		}
	}
	return file
}

// WriteTo writes Effective to a file, from which Load reads it.
func (c *Configuration) WriteTo(path string) error {
	data, err := yaml.Marshal(c.Effective())
	if err != nil {
		return fmt.Errorf("scheduler configuration: %w", err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("write scheduler configuration: %w", err)
	}
	return nil
}

// effectivePlugins names the plugins that are on by default.
func effectivePlugins(given *configv1.Plugins) *configv1.Plugins {
	plugins := &configv1.Plugins{}
	if given != nil {
		*plugins = *given
	}
	b := &builder{registry: builtin, notes: map[string]string{}}
	merged, err := b.merge("multiPoint", defaults, plugins.MultiPoint)
	if err != nil { // there are plugins that did not come with the scheduler
		return plugins
	}
	plugins.MultiPoint = configv1.PluginSet{
		Enabled:  slices.DeleteFunc(merged, func(p configv1.Plugin) bool { return p.Name == unsupported.Name }),
		Disabled: []configv1.Plugin{{Name: "*"}}, // what is on by default is named
	}
	return plugins
}
