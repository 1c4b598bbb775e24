package core

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// PodReady reports whether the pod's status says that it is ready.
func PodReady(pod *Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// NodeReady reports whether the node's status says that it is ready.
func NodeReady(node *Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
