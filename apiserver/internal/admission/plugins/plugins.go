// Package plugins knows every admission plugin by upstream's name, in the
// order in which they run, and builds the chain that the flags ask for.
package plugins

import (
	"fmt"
	"slices"
	"strings"

	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/defaulttoleration"
	"kctl/apiserver/internal/admission/lookup"
	"kctl/apiserver/internal/admission/namespacelifecycle"
	"kctl/apiserver/internal/admission/noderestriction"
	"kctl/apiserver/internal/admission/priority"
	"kctl/apiserver/internal/admission/runtimeclass"
	"kctl/apiserver/internal/admission/serviceaccount"
	"kctl/apiserver/internal/admission/taintnodes"
	"kctl/proto/core"
)

// Objects are where plugins look up what they decide by: registry.Resources.
type Objects struct {
	Namespaces, ServiceAccounts, Pods lookup.Source
	RuntimeClasses, PriorityClasses   lookup.Source
	// DefaultPriority knows the priority class of pods that name none.
	DefaultPriority priority.Defaults
}

// all is every plugin, in upstream's order, with how to make it. All of them
// are on unless they are switched off.
var all = []struct {
	name string
	make func(o Objects, clock clock.Clock) admission.Plugin
}{
	{namespacelifecycle.Name, func(o Objects, _ clock.Clock) admission.Plugin {
		return namespacelifecycle.New(lookup.New[*core.Namespace](o.Namespaces))
	}},
	{serviceaccount.Name, func(o Objects, clock clock.Clock) admission.Plugin {
		return serviceaccount.New(lookup.New[*core.ServiceAccount](o.ServiceAccounts), clock)
	}},
	{noderestriction.Name, func(o Objects, _ clock.Clock) admission.Plugin {
		return noderestriction.New(lookup.New[*core.Pod](o.Pods))
	}},
	{taintnodes.Name, func(Objects, clock.Clock) admission.Plugin { return taintnodes.New() }},
	{priority.Name, func(o Objects, _ clock.Clock) admission.Plugin {
		return priority.New(lookup.New[*schedulingv1.PriorityClass](o.PriorityClasses), o.DefaultPriority)
	}},
	{defaulttoleration.Name, func(Objects, clock.Clock) admission.Plugin { return defaulttoleration.New() }},
	{runtimeclass.Name, func(o Objects, _ clock.Clock) admission.Plugin {
		return runtimeclass.New(lookup.New[*nodev1.RuntimeClass](o.RuntimeClasses))
	}},
}

// Names lists every plugin in the order in which they run.
func Names() []string {
	names := make([]string, 0, len(all))
	for _, p := range all {
		names = append(names, p.name)
	}
	return names
}

// Validate refuses names of --enable-admission-plugins and
// --disable-admission-plugins that no plugin has, or that both have.
func Validate(enable, disable []string) error {
	names := Names()
	for _, name := range slices.Concat(enable, disable) {
		if !slices.Contains(names, name) {
			return fmt.Errorf("admission plugin %q is not one that this server has: %s", name, strings.Join(names, ", "))
		}
	}
	for _, name := range enable {
		if slices.Contains(disable, name) {
			return fmt.Errorf("admission plugin %q is both enabled and disabled", name)
		}
	}
	return nil
}

// Chain builds the chain of all plugins but the disabled ones.
func Chain(o Objects, clock clock.Clock, enable, disable []string) (*admission.Chain, error) {
	if err := Validate(enable, disable); err != nil {
		return nil, err
	}
	var on []admission.Plugin
	for _, p := range all {
		if !slices.Contains(disable, p.name) {
			on = append(on, p.make(o, clock))
		}
	}
	return admission.NewChain(on...), nil
}
