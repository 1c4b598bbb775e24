package probe

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// A static pod is there before its mirror, which has its status.
func TestWhatWasKnownComesLate(t *testing.T) {
	yes := true
	known := &core.PodStatus{ContainerStatuses: []core.ContainerStatus{{Name: "c", ContainerID: "r://1", Ready: true, Started: &yes}}}
	daily := func(p *corev1.Probe) { p.PeriodSeconds = 86400 }
	t.Run("before an answer", func(t *testing.T) {
		run(t, func(w *world) {
			w.apart = true
			pod := podWith(probe("live"), probe("ready", daily), probe("start", daily))
			id := w.container("1", runtimestate.StateRunning)
			w.manager.AddPod(pod)
			w.after(time.Minute)
			w.expect(pod, id, false, false, podactions.ProbeSuccess)
			if w.manager.Settled(pod, w.status) {
				t.Error("settled with no answer and no report")
			}
			w.expectAsked()
			w.reports(known)
			w.expect(pod, id, true, true, podactions.ProbeSuccess)
			if !w.manager.Settled(pod, w.status) {
				t.Error("not settled by the report")
			}
			w.manager.AddPod(pod)
			w.after(0)
			if w.manager.Results(id).Startup != podactions.ProbeSuccess {
				t.Error("it has not started for those who restart containers")
			}
			w.expectAsked("live 1 @60")
			w.reports(nil) // the mirror was deleted
			w.expect(pod, id, true, true, podactions.ProbeSuccess)
		})
	})
	t.Run("after an answer", func(t *testing.T) {
		run(t, func(w *world) {
			w.apart = true
			pod := podWith(nil, probe("ready", func(p *corev1.Probe) { p.FailureThreshold = 1 }), nil)
			id := w.container("1", runtimestate.StateRunning)
			w.answer("ready", no)
			w.manager.AddPod(pod)
			w.after(10 * time.Second)
			if w.manager.Settled(pod, w.status) {
				t.Error("settled by the answer: when it changed is not known")
			}
			w.reports(known)
			w.manager.AddPod(pod)
			w.after(0)
			w.expect(pod, id, true, false, podactions.ProbeUnknown)
		})
	})
	t.Run("while it fails", func(t *testing.T) {
		run(t, func(w *world) {
			w.apart = true
			pod := podWith(nil, probe("ready", func(p *corev1.Probe) { p.PeriodSeconds, p.FailureThreshold = 10, 3 }), nil)
			id := w.container("1", runtimestate.StateRunning)
			w.answer("ready", no)
			w.manager.AddPod(pod)
			w.after(20 * time.Second) // asked twice, which does not count yet
			w.reports(known)
			w.expect(pod, id, true, true, podactions.ProbeUnknown)
		})
	})
	t.Run("of a new container", func(t *testing.T) {
		run(t, func(w *world) {
			w.apart = true
			pod := podWith(nil, probe("ready", daily), nil)
			w.containerStarted("1", runtimestate.StateRunning, time.Second)
			if !w.manager.Settled(pod, w.status) {
				t.Error("it waits for what no earlier kubelet can have reported")
			}
		})
	})
}
