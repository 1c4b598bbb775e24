// Package nodeunschedulable is the plugin NodeUnschedulable: a cordoned node
// takes only pods that tolerate the taint node.kubernetes.io/unschedulable.
// The profile builds it; the other taints are TaintToleration's.
package nodeunschedulable

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
	"kctl/scheduler/framework"
)

// Name of the plugin in configurations and metrics.
const Name = "NodeUnschedulable"

var refused = framework.NewStatus(framework.UnschedulableAndUnresolvable, "node(s) were unschedulable").By(Name)

// Plugin implements Filter and Sign.
type Plugin struct{}

// New returns the plugin.
func New() *Plugin { return &Plugin{} }

// Name implements framework.Plugin.
func (*Plugin) Name() string { return Name }

// Filter implements framework.Filter.
func (*Plugin) Filter(_ context.Context, _ *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	if node.Unschedulable && !toleratesCordon(pod.Pod) {
		return refused
	}
	return nil
}

// SignPod implements framework.Sign.
func (*Plugin) SignPod(pod *framework.PodInfo, to *framework.Signature) {
	to.Tolerations(pod.Pod.Spec.Tolerations)
}

func toleratesCordon(pod *core.Pod) bool {
	taint := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	return framework.Tolerates(pod.Spec.Tolerations, &taint)
}

// EventsToRegister implements framework.EnqueueExtensions.
func (*Plugin) EventsToRegister() []framework.ClusterEventWithHint {
	return []framework.ClusterEventWithHint{
		{
			Resource: framework.NodeEvent, ActionType: framework.Add | framework.UpdateNodeTaint,
			QueueingHintFn: func(_ *framework.PodInfo, event framework.ClusterEvent) bool {
				// A change of a node that was schedulable already helps no refused pod.
				return (event.OldNode == nil || event.OldNode.Spec.Unschedulable) && !event.NewNode.Spec.Unschedulable
			},
		},
		{Resource: framework.PodEvent, ActionType: framework.UpdatePodToleration,
			QueueingHintFn: func(_ *framework.PodInfo, event framework.ClusterEvent) bool {
				return toleratesCordon(event.NewPod)
			}},
	}
}
