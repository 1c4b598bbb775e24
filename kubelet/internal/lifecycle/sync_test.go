package lifecycle

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/podworker"
	"kctl/proto/core"
)

// A pod's deadline depends on elapsed time only, even if the machine's clock is
// set while the pod runs.
func TestDeadlinesOutliveClocksThatAreSet(t *testing.T) {
	l := New(Options{Clock: clock.RealClock{}, Events: &eventLog{}})
	for name, set := range map[string]time.Duration{"back": -24 * time.Hour, "forward": 24 * time.Hour} {
		pod := &core.Pod{}
		pod.UID, pod.Spec.ActiveDeadlineSeconds = types.UID(name), new(int64(3600))
		look := func(clockSet time.Duration) time.Duration {
			began := metav1.NewTime(time.Now().Add(-time.Minute - clockSet))
			left, exceeded := l.deadline(pod, &core.PodStatus{Phase: corev1.PodRunning, StartTime: &began})
			if exceeded {
				t.Errorf("clock set %s by %v: the pod has had its time", name, clockSet)
			}
			return left
		}
		before, after := look(0), look(set)
		if after > before || before-after > time.Minute {
			t.Errorf("clock set %s: %v were left, and %v are", name, before, after)
		}
	}
	// A kubelet that comes when the clock was set back has the pod's whole time to give.
	pod := &core.Pod{}
	pod.UID, pod.Spec.ActiveDeadlineSeconds = "later", new(int64(60))
	tomorrow := metav1.NewTime(time.Now().Add(24 * time.Hour))
	if left, _ := l.deadline(pod, &core.PodStatus{StartTime: &tomorrow}); left > time.Minute {
		t.Errorf("%v of a minute are left", left)
	}
}

// If the runtime fails to return a pod's status, the next step does not rely on
// the last known one, but asks again.
func TestAStatusThatCouldNotBeHad(t *testing.T) {
	l, found := newLifecycle(t, nil)
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web"}}
	runs(t, found, sandboxOf(t, found, pod))
	// Later than any other observation in this test.
	l.Cache.Set(pod.UID, nil, errors.New("the runtime was confused"), time.Now().Add(time.Hour))
	known, err := l.runtimeStatus(t.Context(), pod)
	if err != nil || len(known.Running()) != 1 {
		t.Errorf("%+v, %v", known, err)
	}
}

// While the runtime does not say what it has of a pod, the pod's events do, in upstream's words.
func TestAStatusThatCanNotBeHadIsAnEvent(t *testing.T) {
	l, _ := newLifecycle(t, func(_ context.Context, method string, call func() error) error {
		if method == "ListPodSandbox" {
			return errors.New("the runtime is confused")
		}
		return call()
	})
	log := l.Events.(*eventLog)
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web"}}
	l.Cache.Set(pod.UID, nil, errors.New("the runtime was confused"), time.Now())
	if _, err := l.runtimeStatus(t.Context(), pod); err == nil || !log.has("FailedSync: error determining status: ") || !log.has("the runtime is confused") {
		t.Errorf("%v; events: %q", err, log.lines)
	}
	log.lines = nil
	err := l.SyncTerminatingPod(t.Context(), podworker.Job{Update: podworker.Update{Pod: pod}})
	if err == nil || !log.has("FailedSync: error determining status: ") {
		t.Errorf("at its end: %v; events: %q", err, log.lines)
	}
	log.lines = nil
	ended, cancel := context.WithCancel(t.Context())
	cancel() // the pod's next step is due
	if _, err := l.runtimeStatus(ended, pod); err == nil || len(log.lines) > 0 {
		t.Errorf("%v; events: %q", err, log.lines)
	}
}
