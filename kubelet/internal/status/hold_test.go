package status

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

// creating is the status of a pod without a container; it has a sandbox if it
// has an address.
func creating(ip string) core.PodStatus {
	s := phaseStatus(corev1.PodPending)
	s.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}}
	ready := corev1.ConditionFalse
	if ip != "" {
		s.PodIP, s.PodIPs, ready = ip, []corev1.PodIP{{IP: ip}}, corev1.ConditionTrue
	}
	s.Conditions = append(s.Conditions, core.PodCondition{Type: corev1.PodReadyToStartContainers, Status: ready})
	return s
}

// sent is the number of patches that the API got, and its present state of the
// pod.
func (a *fakeAPI) sent() (patches int, pod *core.Pod) {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.patches), a.pod
}

// TestASandboxWaitsForItsContainers: what follows at once is sent in the same
// patch, without a delay.
func TestASandboxWaitsForItsContainers(t *testing.T) {
	bed(t, func(t *testing.T, m *Manager, api *fakeAPI, pods *fakePods) {
		<-m.Rested() // nothing was ever sent
		m.Set(pods.pod, creating(""))
		<-m.Rested()
		if n, _ := api.sent(); n != 1 {
			t.Fatalf("%d patches when none was on its way any more", n)
		}
		m.Set(pods.pod, creating("10.0.0.7"))
		if n, _ := api.sent(); n != 1 {
			t.Fatalf("%d patches, want the first status only", n)
		}
		running := creating("10.0.0.7")
		running.Phase = corev1.PodRunning
		m.Set(pods.pod, running)
		if n, pod := api.sent(); n != 2 || pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP != "10.0.0.7" {
			t.Errorf("%d patches, and the pod is %+v", n, pod.Status)
		}
		time.Sleep(2 * holdFor) // the bubble's clock
		if n, _ := api.sent(); n != 2 {
			t.Errorf("%d patches, want no more", n)
		}
	})
}

// TestASandboxIsToldOf: if nothing follows soon, the sandbox is reported by
// itself, whatever else triggers the manager meanwhile.
func TestASandboxIsToldOf(t *testing.T) {
	bed(t, func(t *testing.T, m *Manager, api *fakeAPI, pods *fakePods) {
		m.Set(pods.pod, creating(""))
		synctest.Wait()
		m.Set(pods.pod, creating("10.0.0.7"))
		time.Sleep(holdFor / 2)
		_, first := api.sent()
		pods.set(first) // by the watch
		m.Reconcile(first)
		if n, _ := api.sent(); n != 1 {
			t.Fatalf("%d patches, want the first status only", n)
		}
		time.Sleep(holdFor)
		if n, pod := api.sent(); n != 2 || pod.Status.PodIP != "10.0.0.7" {
			t.Errorf("%d patches, and the pod is %+v", n, pod.Status)
		}
	})
}

// TestWhatIsMoreThanAStep: a status with any other change is sent at once.
func TestWhatIsMoreThanAStep(t *testing.T) {
	failed := creating("10.0.0.7")
	failed.ContainerStatuses[0].State.Waiting.Reason = "ErrImagePull"
	gone := creating("")
	for name, c := range map[string]struct {
		before, after core.PodStatus
		step          bool
	}{
		"the sandbox":           {creating(""), creating("10.0.0.7"), true},
		"and a container":       {creating(""), failed, false},
		"the sandbox is gone":   {creating("10.0.0.7"), gone, false},
		"the pod runs by now":   {creating(""), phaseStatus(corev1.PodRunning), false},
		"it ran already before": {phaseStatus(corev1.PodRunning), creating("10.0.0.7"), false},
	} {
		if step := isStep(&c.before, &c.after); step != c.step {
			t.Errorf("%s: a step: %v, want %v", name, step, c.step)
		}
	}
}
