package kubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/proto/core"
)

// A critical pod that finds the node full ends others; the next one, as critical,
// does not.
func TestCriticalPodsMakeRoom(t *testing.T) {
	b, _ := newHollowBed(t, nil)
	sized := func(name, cpu string, priority int32) *core.Pod {
		pod := hollowPod(name, nil)
		pod.Spec.Priority = &priority
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		return pod
	}
	b.create(sized("low", "3", 0))
	b.create(sized("high", "4", 5))
	b.waitPhase("low", corev1.PodRunning)
	b.waitPhase("high", corev1.PodRunning)

	b.create(sized("plain", "2", 7))
	if plain := b.waitPhase("plain", corev1.PodFailed); plain.Status.Reason != "OutOfcpu" {
		t.Errorf("a pod that is not critical: %s", plain.Status.Reason)
	}
	b.create(sized("critical", "4", core.SystemCriticalPriority))
	b.waitPhase("critical", corev1.PodRunning)
	ended := b.waitPhase("low", corev1.PodFailed)
	if s := ended.Status; s.Reason != "Preempting" || s.Message != "Preempted in order to admit critical pod" {
		t.Errorf("status %s, %q", s.Reason, s.Message)
	}
	target := false
	for _, c := range ended.Status.Conditions {
		target = target || c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "TerminationByKubelet"
	}
	if !target {
		t.Errorf("conditions %+v", ended.Status.Conditions)
	}
	if phase := b.phase("high"); phase != corev1.PodRunning {
		t.Errorf("a pod that could stay is %s", phase)
	}
	if n := b.value("kubelet_preemptions"); n != 1 {
		t.Errorf("%v preemptions", n)
	}
	b.create(sized("too-big", "5", core.SystemCriticalPriority))
	if tooBig := b.waitPhase("too-big", corev1.PodFailed); tooBig.Status.Reason != "OutOfcpu" {
		t.Errorf("a pod for which no room can be made: %s", tooBig.Status.Reason)
	}
	for _, name := range []string{"low", "high", "plain", "critical", "too-big"} {
		b.delete(name)
		b.api.wait(name+" to be gone", func() bool { return b.api.pod(name) == nil })
	}
}
