package kubelet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/kubelet/internal/simulated"
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

// checkPreempted says whether the pod tells that it had to go.
func (b *bed) checkPreempted(name string) {
	b.t.Helper()
	status := b.api.pod(name).Status
	if c := condition(&status, corev1.DisruptionTarget); c == nil || c.Status != corev1.ConditionTrue || c.Reason != corev1.PodReasonTerminationByKubelet {
		b.t.Errorf("%s: DisruptionTarget %+v", name, c)
	}
}

// Whoever has to make room has its grace period for that, and the critical pod, which
// would be one too many until then, waits for its end.
func TestCriticalPodsWaitForTheirRoom(t *testing.T) {
	b, _ := newHollowBed(t, nil)
	sized := func(name string, annotations map[string]string) *core.Pod {
		pod := hollowPod(name, annotations)
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5")}
		return pod
	}
	stubborn := sized("stubborn", map[string]string{simulated.Stubborn: "true"})
	stubborn.Spec.TerminationGracePeriodSeconds = ptr.To(int64(3))
	b.create(stubborn)
	b.waitPhase("stubborn", corev1.PodRunning)
	critical := sized("critical", nil)
	critical.Spec.Priority = ptr.To(int32(core.SystemCriticalPriority))
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

// A critical pod does not wait for ever for one that does not end, nor once it is to
// end itself.
func TestHowLongCriticalPodsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &Kubelet{clock: clock.RealClock{}, events: &podEvents{}}
		pod, other := hollowPod("critical", nil), hollowPod("other", nil)
		pod.UID = "critical"
		never := leave{pod: other, done: make(chan struct{}), until: time.Now().Add(patienceWith(other))}
		k.rooms.note(pod.UID, []leave{never})
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := k.awaitRoom(ctx, pod); err == nil || time.Since(start) != time.Second {
			t.Errorf("a pod that is to end waited for %v: %v", time.Since(start), err)
		}
		for range 2 { // the second time, there is nothing to wait for
			if err := k.awaitRoom(t.Context(), pod); err != nil || time.Since(start) != 10*time.Second {
				t.Errorf("waited for %v: %v", time.Since(start), err)
			}
		}
		other.Spec.TerminationGracePeriodSeconds = ptr.To(int64(30))
		if patience := patienceWith(other); patience != 45*time.Second {
			t.Errorf("a pod that has 30s is waited for %v", patience)
		}
	})
}
