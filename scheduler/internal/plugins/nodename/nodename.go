// Package nodename is the plugin NodeName: a pod that names its node may run
// only there. The profile builds it; it looks at nothing but the name.
package nodename

import (
	"context"

	"kctl/scheduler/framework"
)

// Name of the plugin in configurations and metrics.
const Name = "NodeName"

var refused = framework.NewStatus(framework.UnschedulableAndUnresolvable,
	"node(s) didn't match the requested node name").By(Name)

// Plugin implements Filter and Sign.
type Plugin struct{}

// New returns the plugin.
func New() *Plugin { return &Plugin{} }

// Name implements framework.Plugin.
func (*Plugin) Name() string { return Name }

// Filter implements framework.Filter.
func (*Plugin) Filter(_ context.Context, _ *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	if want := pod.Pod.Spec.NodeName; want != "" && want != node.Name() {
		return refused
	}
	return nil
}

// SignPod implements framework.Sign.
func (*Plugin) SignPod(pod *framework.PodInfo, to *framework.Signature) {
	to.String(pod.Pod.Spec.NodeName)
}

// EventsToRegister implements framework.EnqueueExtensions.
func (*Plugin) EventsToRegister() []framework.ClusterEventWithHint {
	return []framework.ClusterEventWithHint{{
		Resource: framework.NodeEvent, ActionType: framework.Add,
		QueueingHintFn: func(pod *framework.PodInfo, event framework.ClusterEvent) bool {
			return event.NewNode.Name == pod.Pod.Spec.NodeName
		},
	}}
}
