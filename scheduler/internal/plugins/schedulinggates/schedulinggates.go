// Package schedulinggates is the plugin SchedulingGates: a pod stays out of
// the queue until its last scheduling gate was removed. The profile builds it.
package schedulinggates

import (
	"context"
	"fmt"

	"kctl/proto/core"
	"kctl/scheduler/framework"
)

// Name of the plugin in configurations and metrics.
const Name = "SchedulingGates"

// Plugin implements PreEnqueue.
type Plugin struct{}

// New returns the plugin.
func New() *Plugin { return &Plugin{} }

// Name implements framework.Plugin.
func (*Plugin) Name() string { return Name }

// PreEnqueue implements framework.PreEnqueue.
func (*Plugin) PreEnqueue(_ context.Context, pod *core.Pod) *framework.Status {
	if len(pod.Spec.SchedulingGates) == 0 {
		return nil
	}
	names := make([]string, 0, len(pod.Spec.SchedulingGates))
	for _, gate := range pod.Spec.SchedulingGates {
		names = append(names, gate.Name)
	}
	return framework.NewStatus(framework.UnschedulableAndUnresolvable,
		fmt.Sprintf("waiting for scheduling gates: %v", names)).By(Name)
}

// EventsToRegister implements framework.EnqueueExtensions.
func (*Plugin) EventsToRegister() []framework.ClusterEventWithHint {
	return []framework.ClusterEventWithHint{{Resource: framework.PodEvent, ActionType: framework.UpdatePodSchedulingGates}}
}
