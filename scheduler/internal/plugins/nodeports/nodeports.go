// Package nodeports is the plugin NodePorts: two pods that want the same port
// of the node's address cannot share a node. The profile builds it.
package nodeports

import (
	"context"
	"slices"

	"kctl/scheduler/framework"
)

// Name of the plugin in configurations and metrics.
const Name = "NodePorts"

var (
	refused = framework.NewStatus(framework.Unschedulable,
		"node(s) didn't have free ports for the requested pod ports").By(Name)
	skip = framework.NewStatus(framework.Skip)
)

// Plugin implements PreFilter, Filter and Sign.
type Plugin struct{}

// New returns the plugin.
func New() *Plugin { return &Plugin{} }

// Name implements framework.Plugin.
func (*Plugin) Name() string { return Name }

// PreFilter skips pods without host ports.
func (*Plugin) PreFilter(_ context.Context, _ *framework.CycleState,
	pod *framework.PodInfo) (*framework.PreFilterResult, *framework.Status) {
	if len(pod.HostPorts) == 0 {
		return nil, skip
	}
	return nil, nil
}

// Filter implements framework.Filter.
func (*Plugin) Filter(_ context.Context, _ *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	if conflict(pod.HostPorts, node.HostPorts) {
		return refused
	}
	return nil
}

// SignPod implements framework.Sign.
func (*Plugin) SignPod(pod *framework.PodInfo, to *framework.Signature) {
	to.Int(int64(len(pod.HostPorts)))
	for _, port := range pod.HostPorts {
		to.String(port.IP)
		to.String(string(port.Protocol))
		to.Int(int64(port.Port))
	}
}

func conflict(wanted, used []framework.HostPort) bool {
	for _, w := range wanted {
		if slices.ContainsFunc(used, w.Conflicts) {
			return true
		}
	}
	return false
}

// EventsToRegister implements framework.EnqueueExtensions.
func (*Plugin) EventsToRegister() []framework.ClusterEventWithHint {
	return []framework.ClusterEventWithHint{
		{
			Resource: framework.AssignedPodEvent, ActionType: framework.Delete,
			QueueingHintFn: func(pod *framework.PodInfo, event framework.ClusterEvent) bool {
				return conflict(pod.HostPorts, framework.HostPorts(event.OldPod))
			},
		},
		{Resource: framework.NodeEvent, ActionType: framework.Add},
	}
}
