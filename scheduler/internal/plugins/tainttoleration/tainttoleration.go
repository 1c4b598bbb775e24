// Package tainttoleration is the plugin TaintToleration: nodes refuse pods that
// do not tolerate their NoSchedule and NoExecute taints, and rank lower the
// more PreferNoSchedule taints a pod does not tolerate. The profile builds it;
// evicting pods from newly tainted nodes is not the scheduler's job.
package tainttoleration

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"kctl/scheduler/framework"
)

// Name of the plugin in configurations and metrics.
const Name = "TaintToleration"

var refused = framework.NewStatus(framework.UnschedulableAndUnresolvable, "node(s) had untolerated taint(s)").By(Name)

// Plugin implements Filter, Sign, PreScore, Score and ScoreExtensions.
type Plugin struct{}

// New returns the plugin.
func New() *Plugin { return &Plugin{} }

// Name implements framework.Plugin.
func (*Plugin) Name() string { return Name }

// Filter implements framework.Filter.
func (*Plugin) Filter(_ context.Context, _ *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	if !framework.ToleratesAll(pod.Pod, node.Taints) {
		return refused
	}
	return nil
}

// SignPod implements framework.Sign.
func (*Plugin) SignPod(pod *framework.PodInfo, to *framework.Signature) {
	to.Tolerations(pod.Pod.Spec.Tolerations)
}

const stateKey framework.StateKey = Name

// PreScore implements framework.PreScore: it picks the tolerations that count
// for PreferNoSchedule taints, and skips where no node has such a taint.
func (*Plugin) PreScore(_ context.Context, state *framework.CycleState, pod *framework.PodInfo,
	nodes []*framework.NodeInfo) *framework.Status {
	if state.NoPreferNoSchedule || !slices.ContainsFunc(nodes, (*framework.NodeInfo).PrefersNoSchedule) {
		return skip
	}
	state.Write(stateKey, softOf(pod))
	return nil
}

// softOf are the pod's tolerations of PreferNoSchedule taints.
func softOf(pod *framework.PodInfo) []corev1.Toleration {
	var soft []corev1.Toleration
	for _, t := range pod.Pod.Spec.Tolerations {
		if t.Effect == "" || t.Effect == corev1.TaintEffectPreferNoSchedule {
			soft = append(soft, t)
		}
	}
	return soft
}

var skip = framework.NewStatus(framework.Skip)

// Score counts the PreferNoSchedule taints that are not tolerated; NormalizeScore
// reverses it.
func (*Plugin) Score(_ context.Context, state *framework.CycleState, pod *framework.PodInfo,
	node *framework.NodeInfo) (int64, *framework.Status) {
	soft, ok := state.Read(stateKey).([]corev1.Toleration)
	if !ok { // the profile has it not at preScore
		soft = softOf(pod)
	}
	var count int64
	for i := range node.Taints {
		taint := &node.Taints[i]
		if taint.Effect == corev1.TaintEffectPreferNoSchedule && !framework.Tolerates(soft, taint) {
			count++
		}
	}
	return count, nil
}

// NormalizeScore implements framework.ScoreExtensions.
func (*Plugin) NormalizeScore(_ context.Context, _ *framework.CycleState, _ *framework.PodInfo, scores []int64) *framework.Status {
	framework.NormalizeByMax(scores, true)
	return nil
}

// EventsToRegister implements framework.EnqueueExtensions.
func (*Plugin) EventsToRegister() []framework.ClusterEventWithHint {
	return []framework.ClusterEventWithHint{
		{
			Resource: framework.NodeEvent, ActionType: framework.Add | framework.UpdateNodeTaint,
			QueueingHintFn: func(pod *framework.PodInfo, event framework.ClusterEvent) bool {
				wasOpen := event.OldNode != nil && framework.ToleratesAll(pod.Pod, event.OldNode.Spec.Taints)
				return !wasOpen && framework.ToleratesAll(pod.Pod, event.NewNode.Spec.Taints)
			},
		},
		{Resource: framework.PodEvent, ActionType: framework.UpdatePodToleration},
	}
}
