package core

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Ready is what the condition of that name says, and nothing else.
func TestReady(t *testing.T) {
	for _, c := range []struct {
		condition string
		status    corev1.ConditionStatus
		want      bool
	}{
		{"Ready", corev1.ConditionTrue, true}, {"Ready", corev1.ConditionFalse, false}, {"Ready", corev1.ConditionUnknown, false},
		{"Ready", "", false}, {"ContainersReady", corev1.ConditionTrue, false}, {"DiskPressure", corev1.ConditionTrue, false},
	} {
		pod, node := &Pod{}, &Node{}
		pod.Status.Conditions = []PodCondition{{Type: "Initialized", Status: corev1.ConditionTrue},
			{Type: corev1.PodConditionType(c.condition), Status: c.status}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: "PIDPressure", Status: corev1.ConditionTrue},
			{Type: corev1.NodeConditionType(c.condition), Status: c.status}}
		if PodReady(pod) != c.want || NodeReady(node) != c.want {
			t.Errorf("%s %s: pod %t, node %t", c.condition, c.status, PodReady(pod), NodeReady(node))
		}
	}
	if PodReady(&Pod{}) || NodeReady(&Node{}) {
		t.Error("what says nothing is ready")
	}
}
