package status

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

// TestPassingConditions: a condition about something in progress is removed
// with it, from the API, too; others' conditions stay.
func TestPassingConditions(t *testing.T) {
	api := &core.PodStatus{Conditions: []core.PodCondition{
		{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue}, {Type: "example.com/Other", Status: corev1.ConditionTrue},
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
	}}
	got := merged(core.PodStatus{}, api)
	if findCondition(got.Conditions, corev1.PodResizeInProgress) != nil || len(got.Conditions) != 2 {
		t.Errorf("the conditions are %+v", got.Conditions)
	}
	still := merged(core.PodStatus{Conditions: []core.PodCondition{{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue}}}, api)
	if len(still.Conditions) != 3 {
		t.Errorf("while it goes on, the conditions are %+v", still.Conditions)
	}
}
