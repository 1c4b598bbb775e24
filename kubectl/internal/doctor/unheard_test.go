package doctor

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/proto/core"
)

func TestNoScheduler(t *testing.T) {
	now := time.Unix(1000, 0)
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-time.Minute))}}
	if !NoScheduler(pod, now) {
		t.Error("nobody looks at the pod, and that is not seen")
	}
	if NoScheduler(pod, now.Add(-time.Minute)) {
		t.Error("a new pod waits in vain")
	}
	pod.Status.Conditions = []core.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}}
	if NoScheduler(pod, now) {
		t.Error("a scheduler has said why the pod waits")
	}
	pod.Status.Conditions, pod.Spec.NodeName = nil, "n"
	if NoScheduler(pod, now) {
		t.Error("the pod has a node")
	}
}

func TestUnheard(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet",
		"metadata": map[string]any{"generation": int64(2)}}}
	if !Unheard(object) {
		t.Error("no controller has seen it")
	}
	object.Object["status"] = map[string]any{"observedGeneration": int64(2)}
	if Unheard(object) {
		t.Error("its controller has seen it")
	}
	if job := (&unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job",
		"metadata": map[string]any{"generation": int64(1)}}}); Unheard(job) {
		t.Error("jobs don't record what has been seen of them")
	}
}

// An old workload that was scaled a moment ago is none that no controller takes up.
func TestLasts(t *testing.T) {
	now := time.Unix(1000, 0)
	at := func(ago time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-ago)} }
	object := &metav1.ObjectMeta{CreationTimestamp: *at(time.Hour)}
	if !lasts(object, 1, now) {
		t.Error("an hour is short")
	}
	object.ManagedFields = []metav1.ManagedFieldsEntry{{Time: at(time.Minute)}, {Subresource: "status", Time: at(0)}, {Subresource: "status"}}
	if !lasts(object, 1, now) {
		t.Error("a controller's status is a change of what is wanted")
	}
	object.ManagedFields[0].Time = at(time.Second)
	if lasts(object, 1, now) || !lasts(object, 0, now) {
		t.Error("a change of a second ago is old, or one before which no controller has seen anything is new")
	}
	object.ManagedFields = []metav1.ManagedFieldsEntry{{Subresource: "scale"}}
	if lasts(object, 1, now) {
		t.Error("a scale of no time is old")
	}
}
