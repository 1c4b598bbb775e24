package podtopologyspread

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"kctl/proto/core"
	"kctl/scheduler/framework"
)

// EventsToRegister implements framework.EnqueueExtensions.
func (p *Plugin) EventsToRegister() []framework.ClusterEventWithHint {
	return []framework.ClusterEventWithHint{
		{Resource: framework.AssignedPodEvent, ActionType: framework.Add | framework.Delete | framework.UpdatePodLabel,
			QueueingHintFn: p.podHint},
		// A node can bring a domain or take the emptiest one away.
		{Resource: framework.NodeEvent, ActionType: framework.Add | framework.Delete | framework.UpdateNodeLabel | framework.UpdateNodeTaint,
			QueueingHintFn: p.nodeHint},
		{Resource: framework.PodEvent, ActionType: framework.UpdatePodLabel | framework.UpdatePodToleration, QueueingHintFn: p.ownHint},
	}
}

// podHint: a pod counts, or no longer does, for a constraint that its labels match.
func (p *Plugin) podHint(pod *framework.PodInfo, event framework.ClusterEvent) bool {
	for _, other := range []*core.Pod{event.OldPod, event.NewPod} {
		if other != nil && other.Namespace != pod.Pod.Namespace {
			return false
		}
	}
	constraints, err := p.constraints(pod.Pod, corev1.DoNotSchedule)
	return err != nil || slices.ContainsFunc(constraints,
		func(c constraint) bool { return c.matches(event.OldPod) != c.matches(event.NewPod) })
}

// ownHint: other labels change what the pod itself counts for, tolerations which nodes
// take part.
func (p *Plugin) ownHint(pod *framework.PodInfo, event framework.ClusterEvent) bool {
	constraints, err := p.constraints(pod.Pod, corev1.DoNotSchedule)
	tolerates := !apiequality.Semantic.DeepEqual(event.OldPod.Spec.Tolerations, event.NewPod.Spec.Tolerations)
	return err != nil || slices.ContainsFunc(constraints, func(c constraint) bool {
		return tolerates && c.honorTaints || c.matches(event.OldPod) != c.matches(event.NewPod)
	})
}

// matches reports whether the constraint is about a pod; nil is none.
func (c *constraint) matches(pod *core.Pod) bool {
	return pod != nil && c.selector.Matches(labels.Set(pod.Labels))
}

// nodeHint: a node without all of the keys accepts no such pod, and counts in
// no domain. A node that had and has them helps if it moved to another domain,
// or if it starts or stops to count for a constraint.
func (p *Plugin) nodeHint(pod *framework.PodInfo, event framework.ClusterEvent) bool {
	constraints, err := p.constraints(pod.Pod, corev1.DoNotSchedule)
	if err != nil {
		return true
	}
	before, after := event.OldNode, event.NewNode
	counted := func(node *core.Node) bool { return node != nil && hasAll(node, constraints) }
	if !counted(before) || !counted(after) {
		return counted(before) != counted(after)
	}
	own := nodeaffinity.GetRequiredNodeAffinity(pod.Pod)
	return slices.ContainsFunc(constraints, func(c constraint) bool {
		return before.Labels[c.key] != after.Labels[c.key] || c.counts(pod.Pod, own, before) != c.counts(pod.Pod, own, after)
	})
}
