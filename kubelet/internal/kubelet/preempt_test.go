package kubelet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/kubelet/internal/simulated"
	"kctl/proto/core"
)

// A critical pod that finds the node full preempts others; the next one,
// equally critical, does not preempt it.
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
	if s := b.waitPhase("low", corev1.PodSucceeded).Status; s.Reason != "" || s.Message != "" {
		t.Errorf("a pod that ended well: %s, %q", s.Reason, s.Message)
	}
	b.checkPreempted("low")
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

// checkPreempted checks that the pod's status says that it was preempted.
func (b *bed) checkPreempted(name string) {
	b.t.Helper()
	status := b.api.pod(name).Status
	if c := condition(&status, corev1.DisruptionTarget); c == nil || c.Status != corev1.ConditionTrue || c.Reason != corev1.PodReasonTerminationByKubelet {
		b.t.Errorf("%s: DisruptionTarget %+v", name, c)
	}
}

// A preempted pod has its grace period, and the critical pod, which does not
// fit until then, waits for its end.
func TestCriticalPodsWaitForTheirRoom(t *testing.T) {
	b, _ := newHollowBed(t, nil)
	sized := func(name string, annotations map[string]string) *core.Pod {
		pod := hollowPod(name, annotations)
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5")}
		return pod
	}
	stubborn := sized("stubborn", map[string]string{simulated.Stubborn: "true"})
	stubborn.Spec.TerminationGracePeriodSeconds = new(int64(3))
	b.create(stubborn)
	b.waitPhase("stubborn", corev1.PodRunning)
	critical := sized("critical", nil)
	critical.Spec.Priority = new(int32(core.SystemCriticalPriority))
	b.create(critical)
	begun := b.waitPhase("critical", corev1.PodRunning).Status.ContainerStatuses[0].State.Running.StartedAt
	status := b.waitPhase("stubborn", corev1.PodFailed).Status
	if status.Reason != "Preempting" || status.Message != "Preempted in order to admit critical pod" {
		t.Errorf("a pod that had to be killed: %s, %q", status.Reason, status.Message)
	}
	b.checkPreempted("stubborn")
	ended := status.ContainerStatuses[0].State.Terminated
	if ended.FinishedAt.Sub(status.StartTime.Time) < 2*time.Second {
		t.Errorf("it began at %v and had until %v", status.StartTime, ended.FinishedAt)
	}
	if begun.Before(&ended.FinishedAt) {
		t.Errorf("the critical pod began at %v, the other ended at %v", begun, ended.FinishedAt)
	}
	for _, name := range []string{"stubborn", "critical"} {
		b.delete(name)
		b.api.wait(name+" to be gone", func() bool { return b.api.pod(name) == nil })
	}
}
