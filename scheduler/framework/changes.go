package framework

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"kctl/proto/core"
)

// PodActions says what its owner changed in a pod; zero if nothing did that a
// plugin could look at.
func PodActions(old, updated *core.Pod) ActionType {
	var actions ActionType
	if !maps.Equal(old.Labels, updated.Labels) {
		actions |= UpdatePodLabel
	}
	if !maps.Equal(old.Annotations, updated.Annotations) {
		actions |= UpdatePodOther
	}
	if apiequality.Semantic.DeepEqual(old.Spec, updated.Spec) {
		return actions
	}
	if len(updated.Spec.Tolerations) != len(old.Spec.Tolerations) ||
		!apiequality.Semantic.DeepEqual(old.Spec.Tolerations, updated.Spec.Tolerations) {
		actions |= UpdatePodToleration
	}
	if len(updated.Spec.SchedulingGates) < len(old.Spec.SchedulingGates) {
		actions |= UpdatePodSchedulingGates
	}
	if PodScaledDown(old, updated) {
		actions |= UpdatePodScaleDown
	}
	return actions | UpdatePodOther
}

// PodScaledDown reports whether a pod now asks for less. For a pod on a node
// the status counts, because a resize is done only when the status says so.
func PodScaledDown(old, updated *core.Pod) bool {
	before, after := NewPodInfo(old).Requests, NewPodInfo(updated).Requests
	return after.MilliCPU < before.MilliCPU || after.Memory < before.Memory ||
		after.EphemeralStorage < before.EphemeralStorage || anyLess(after, before)
}

func anyLess(a, b Resource) bool {
	for name, value := range b.Scalar {
		if a.Scalar[name] < value {
			return true
		}
	}
	return false
}

// NodeActions says what changed in a node that plugins look at; zero for a heartbeat.
func NodeActions(old, updated *core.Node) ActionType {
	var actions ActionType
	if !apiequality.Semantic.DeepEqual(old.Status.Allocatable, updated.Status.Allocatable) {
		actions |= UpdateNodeAllocatable
	}
	if !maps.Equal(old.Labels, updated.Labels) {
		actions |= UpdateNodeLabel
	}
	if old.Spec.Unschedulable != updated.Spec.Unschedulable ||
		!apiequality.Semantic.DeepEqual(old.Spec.Taints, updated.Spec.Taints) {
		actions |= UpdateNodeTaint
	}
	if conditionsChanged(old.Status.Conditions, updated.Status.Conditions) {
		actions |= UpdateNodeCondition
	}
	if !maps.Equal(old.Annotations, updated.Annotations) {
		actions |= UpdateNodeAnnotation
	}
	if !slices.Equal(old.Status.DeclaredFeatures, updated.Status.DeclaredFeatures) {
		actions |= UpdateNodeDeclaredFeatures
	}
	return actions
}

// conditionsChanged compares types and statuses: a kubelet writes times all the while.
func conditionsChanged(old, updated []corev1.NodeCondition) bool {
	return len(old) != len(updated) || slices.ContainsFunc(updated, func(is corev1.NodeCondition) bool {
		return !slices.ContainsFunc(old, func(was corev1.NodeCondition) bool { return was.Type == is.Type && was.Status == is.Status })
	})
}
