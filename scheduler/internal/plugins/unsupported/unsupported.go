// Package unsupported is the plugin KctlUnsupported: a pod that needs a rule or a
// kind of device that this scheduler does not know is refused with a reason that
// names it, because placing it anyway would break a promise to the pod.
//
// The profile always adds it, and it cannot be switched off. A feature leaves its
// list when the plugin for it arrives.
package unsupported

import (
	"context"
	"fmt"

	"kctl/proto/core"
	"kctl/scheduler/framework"
)

// Name of the plugin in configurations and metrics.
const Name = "KctlUnsupported"

// Plugin implements PreFilter.
type Plugin struct{}

// New returns the plugin.
func New() *Plugin { return &Plugin{} }

// Name implements framework.Plugin.
func (*Plugin) Name() string { return Name }

// PreFilter implements framework.PreFilter.
func (*Plugin) PreFilter(_ context.Context, _ *framework.CycleState,
	pod *framework.PodInfo) (*framework.PreFilterResult, *framework.Status) {
	needs := needsOf(pod.Pod)
	if len(needs) == 0 {
		return nil, nil
	}
	return nil, framework.NewStatus(framework.UnschedulableAndUnresolvable, needs...).By(Name)
}

// needsOf lists, as reasons, what pod asks for and this scheduler can't give.
func needsOf(pod *core.Pod) []string {
	var needs []string
	add := func(plugin, field string) {
		needs = append(needs, fmt.Sprintf("%s is not supported by this scheduler (it has no %s plugin)", field, plugin))
	}
	if len(pod.Spec.ResourceClaims) > 0 {
		add("DynamicResources", "spec.resourceClaims")
	}
	if pod.Spec.SchedulingGroup != nil {
		add("GangScheduling", "spec.schedulingGroup")
	}
	return needs
}

// EventsToRegister implements framework.EnqueueExtensions: only a change of the pod
// itself can help.
func (*Plugin) EventsToRegister() []framework.ClusterEventWithHint {
	return []framework.ClusterEventWithHint{{Resource: framework.PodEvent, ActionType: framework.AllActionTypes}}
}
