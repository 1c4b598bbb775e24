package probe

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

func TestReadinessIsAskedAtOnceAndEachPeriod(t *testing.T) {
	run(t, func(w *world) {
		pod := podWith(nil, probe("ready", func(p *corev1.Probe) { p.PeriodSeconds = 5; p.FailureThreshold = 2; p.SuccessThreshold = 2 }), nil)
		w.answer("ready", yes)
		w.manager.AddPod(pod)
		w.after(time.Second)
		w.expectAsked()
		id := w.container("1", runtimestate.StateRunning)
		w.expect(pod, id, true, false, podactions.ProbeUnknown)
		w.after(0)
		w.expectAsked("ready 1 @1") // not a period later
		w.expect(pod, id, true, false, podactions.ProbeUnknown)
		w.after(5 * time.Second)
		w.expectAsked("ready 1 @6")
		w.expect(pod, id, true, true, podactions.ProbeUnknown)
		w.expectUpdates(1)

		w.answer("ready", no)
		w.manager.Changed(uid) // being woken is no reason to probe early
		w.after(5 * time.Second)
		w.expect(pod, id, true, true, podactions.ProbeUnknown)
		w.after(5 * time.Second)
		w.expect(pod, id, true, false, podactions.ProbeUnknown)
		w.expectAsked("ready 1 @11", "ready 1 @16")
		w.expectUpdates(1)
		want := "spec.containers{c} Warning Unhealthy: Readiness probe failed: no"
		w.expectEvents(want, want)
		// It is still probed, and may become ready again.
		w.answer("ready", yes)
		w.after(10 * time.Second)
		w.expect(pod, id, true, true, podactions.ProbeUnknown)

		// The pod's next container starts as not ready.
		w.container("1", runtimestate.StateExited)
		w.after(0)
		w.expect(pod, id, true, false, podactions.ProbeUnknown)
		next := w.container("2", runtimestate.StateRunning)
		w.expect(pod, next, true, false, podactions.ProbeUnknown)
	})
}

// A program that listens a moment after its start is ready then, and not a
// period later. Once it has been ready, it is asked each period only.
func TestReadinessIsAskedAgainSoonAfterTheStart(t *testing.T) {
	run(t, func(w *world) {
		pod := podWith(nil, probe("ready"), nil)
		w.answer("ready", no)
		w.manager.AddPod(pod)
		w.after(time.Second)
		id := w.container("1", runtimestate.StateRunning)
		w.after(500 * time.Millisecond)
		w.expect(pod, id, true, false, podactions.ProbeUnknown)
		w.answer("ready", yes)
		w.after(200 * time.Millisecond)
		w.expect(pod, id, true, true, podactions.ProbeUnknown)
		w.expectAsked("ready 1 @1", "ready 1 @1.1", "ready 1 @1.3", "ready 1 @1.7")
		w.answer("ready", no)
		w.after(40 * time.Second)
		w.expectAsked("ready 1 @11.7", "ready 1 @21.7", "ready 1 @31.7", "ready 1 @41.7")

		// The next container begins anew, and waits never grow beyond the period.
		w.container("2", runtimestate.StateRunning)
		w.after(33 * time.Second)
		w.expectAsked("ready 2 @41.7", "ready 2 @41.8", "ready 2 @42", "ready 2 @42.4", "ready 2 @43.2", "ready 2 @44.8", "ready 2 @48", "ready 2 @54.4",
			"ready 2 @64.4", "ready 2 @74.4")
	})
}

// A runtime that does not answer is not asked ever so often by each container that is not ready.
func TestReadinessIsNotAskedSoonOfWhoIsAway(t *testing.T) {
	run(t, func(w *world) {
		w.answer("ready", no)
		w.manager.AddPod(podWith(nil, probe("ready"), nil))
		w.after(time.Second)
		w.container("1", runtimestate.StateRunning)
		w.after(50 * time.Millisecond)
		w.expectAsked("ready 1 @1")
		w.mu.Lock()
		w.err = errors.New("the runtime is away")
		w.mu.Unlock()
		w.after(30 * time.Second)
		if asked := w.forgetAsked(); len(asked) > 9*attempts {
			t.Errorf("asked %d times in 30 seconds", len(asked))
		}
	})
}

// A program that does not listen yet has not failed.
func TestLivenessWithoutDelayIsAskedAPeriodAfterTheStart(t *testing.T) {
	run(t, func(w *world) {
		pod := podWith(probe("live", func(p *corev1.Probe) { p.PeriodSeconds = 5; p.FailureThreshold = 1 }), nil, nil)
		w.answer("live", no)
		w.manager.AddPod(pod)
		w.after(time.Second)
		id := w.container("1", runtimestate.StateRunning)
		w.after(4 * time.Second)
		w.expectAsked()
		w.expect(pod, id, true, true, podactions.ProbeSuccess)
		w.expectEvents()
		w.after(time.Second)
		w.expectAsked("live 1 @6")
		w.expect(pod, id, true, true, podactions.ProbeFailure)
	})
}

func TestInitialDelayIsFromTheContainersStart(t *testing.T) {
	run(t, func(w *world) {
		pod := podWith(probe("live", func(p *corev1.Probe) { p.InitialDelaySeconds = 7; p.PeriodSeconds = 3 }), nil, nil)
		w.manager.AddPod(pod)
		w.after(2 * time.Second)
		w.container("1", runtimestate.StateRunning)
		w.after(10 * time.Second)
		w.expectAsked("live 1 @9", "live 1 @12")
	})
}

func TestInitialDelayIsNoLongerThanItselfWhenTheClockWasSetBack(t *testing.T) {
	run(t, func(w *world) {
		pod := podWith(probe("live", func(p *corev1.Probe) { p.InitialDelaySeconds = 7; p.PeriodSeconds = 100 }), nil, nil)
		w.manager.AddPod(pod)
		w.containerStarted("1", runtimestate.StateRunning, 24*time.Hour)
		w.after(10 * time.Second)
		w.expectAsked("live 1 @7")
	})
}

func TestLivenessFailsOnceForAContainer(t *testing.T) {
	run(t, func(w *world) {
		pod := podWith(probe("live", func(p *corev1.Probe) { p.PeriodSeconds = 1; p.FailureThreshold = 2 }), nil, nil)
		w.manager.AddPod(pod)
		w.after(time.Second)
		id := w.container("1", runtimestate.StateRunning)
		w.answer("live", yes)
		w.after(0)
		w.expect(pod, id, true, true, podactions.ProbeSuccess)
		w.answer("live", no)
		w.after(time.Second)
		w.answer("live", yes)
		w.after(time.Second)
		w.answer("live", no)
		w.after(time.Second)
		w.expect(pod, id, true, true, podactions.ProbeSuccess) // never twice in a row
		w.after(time.Second)
		w.expect(pod, id, true, true, podactions.ProbeFailure)
		w.expectUpdates(1)
		w.forgetAsked()
		w.after(time.Minute)
		w.expectAsked() // it is being ended
		w.answer("live", yes)
		next := w.container("2", runtimestate.StateRunning)
		w.after(time.Second)
		w.expect(pod, next, true, true, podactions.ProbeSuccess)
		w.expect(pod, id, true, true, podactions.ProbeUnknown)
		w.expectAsked("live 2 @66")
	})
}

func TestStartupComesBeforeTheOthers(t *testing.T) {
	run(t, func(w *world) {
		pod := podWith(probe("live"), probe("ready"), probe("start", func(p *corev1.Probe) { p.PeriodSeconds = 2 }))
		w.answer("start", no)
		w.manager.AddPod(pod)
		w.after(time.Second)
		id := w.container("1", runtimestate.StateRunning)
		w.after(3 * time.Second)
		w.expectAsked("start 1 @1", "start 1 @3")
		w.expect(pod, id, false, false, podactions.ProbeSuccess)
		w.answer("start", yes)
		w.answer("ready", yes)
		w.after(time.Second)
		w.expectAskedInAnyOrder("live 1 @5", "ready 1 @5", "start 1 @5")
		w.expect(pod, id, true, true, podactions.ProbeSuccess)
		w.after(10 * time.Second)
		w.expectAskedInAnyOrder("live 1 @15", "ready 1 @15")

		// The next container has to pass its startup probe again.
		w.answer("start", no)
		next := w.container("2", runtimestate.StateRunning)
		w.after(0)
		w.expectAsked("start 2 @15")
		w.expect(pod, next, false, false, podactions.ProbeSuccess)
		w.after(4 * time.Second)
		if r := w.manager.Results(next); r.Startup != podactions.ProbeFailure {
			t.Errorf("startup of the next is %v", r.Startup)
		}
		w.forgetAsked()
		w.after(time.Minute)
		w.expectAsked()
	})
}

func TestErrorsChangeNothing(t *testing.T) {
	run(t, func(w *world) {
		pod := podWith(probe("live", func(p *corev1.Probe) { p.FailureThreshold = 1 }), nil, nil)
		w.manager.AddPod(pod)
		w.after(time.Second)
		w.mu.Lock()
		w.err = errors.New("the runtime is away")
		w.mu.Unlock()
		id := w.container("1", runtimestate.StateRunning)
		w.after(10 * time.Second)
		w.expectAsked("live 1 @11", "live 1 @11", "live 1 @11")
		w.expect(pod, id, true, true, podactions.ProbeSuccess)
		w.expectUpdates(0)
		w.expectEvents("spec.containers{c} Warning Unhealthy: Liveness probe errored and resulted in unknown state: the runtime is away")
	})
}

func TestWarningsAreSuccesses(t *testing.T) {
	run(t, func(w *world) {
		pod := podWith(nil, probe("ready"), nil)
		w.answer("ready", Answer{Warning, "moved"})
		w.manager.AddPod(pod)
		w.after(time.Second)
		id := w.container("1", runtimestate.StateRunning)
		w.after(0)
		w.expect(pod, id, true, true, podactions.ProbeUnknown)
		w.expectEvents("spec.containers{c} Warning ProbeWarning: Readiness probe warning: moved")
	})
}

func TestEndingPodsKeepOnlyReadiness(t *testing.T) {
	run(t, func(w *world) {
		pod := podWith(probe("live"), probe("ready"), probe("start"))
		w.manager.AddPod(pod)
		w.after(time.Second)
		id := w.container("1", runtimestate.StateRunning)
		w.after(0)
		w.expect(pod, id, true, true, podactions.ProbeSuccess)
		w.manager.StopLivenessAndStartup(uid)
		w.forgetAsked()
		w.answer("ready", no)
		w.answer("live", no)
		w.after(30 * time.Second)
		w.expectAsked("ready 1 @11", "ready 1 @21", "ready 1 @31")
		w.expect(pod, id, true, false, podactions.ProbeUnknown)
		w.manager.RemovePod(uid)
		w.forgetAsked()
		w.after(time.Minute)
		w.expectAsked()
		if len(w.manager.results) != 0 || len(w.manager.pods) != 0 {
			t.Errorf("left: %v, %v", w.manager.results, w.manager.pods)
		}
	})
}

// A kubelet that restarts uses what its predecessor reported to the API, and
// spreads the first probes of existing containers over a period.
func TestRestartKeepsWhatWasKnown(t *testing.T) {
	run(t, func(w *world) {
		pod := podWith(probe("live"), probe("ready"), probe("start"))
		yes := true
		pod.Status.ContainerStatuses = []core.ContainerStatus{{Name: "c", ContainerID: "r://1", Ready: true, Started: &yes}}
		id := w.container("1", runtimestate.StateRunning) // before the Manager knows the pod
		w.expect(pod, id, true, true, podactions.ProbeUnknown)
		w.answer("ready", no)
		w.manager.AddPod(pod)
		w.after(0)
		w.expect(pod, id, true, true, podactions.ProbeSuccess)
		w.after(10 * time.Second)
		asked := w.forgetAsked()
		names := map[string]bool{}
		for _, one := range asked {
			names[one[:4]] = true
		}
		if !names["live"] || !names["read"] || names["star"] {
			t.Errorf("within a period: %q", asked)
		}
		w.after(20 * time.Second)
		w.expect(pod, id, true, false, podactions.ProbeSuccess)
		// Another container with that name was never ready.
		if other := (runtimestate.ContainerID{Type: "r", ID: "2"}); w.manager.Started(pod, "c", other) || w.manager.Ready(pod, "c", other) {
			t.Error("a new container is ready by its predecessor's status")
		}
	})
}

// The containers of an earlier kubelet are not all probed at once.
func TestProbesOfAnEarlierKubeletsContainersBeginAtRandom(t *testing.T) {
	run(t, func(w *world) {
		begins := map[time.Duration]bool{}
		for range 50 {
			one := &worker{manager: w.manager, uid: uid, kind: Readiness, probe: &corev1.Probe{PeriodSeconds: 10}}
			one.begin(&runtimestate.ContainerStatus{StartedAt: w.begun.Add(-time.Hour), State: runtimestate.StateRunning})
			wait := one.next.Sub(w.begun)
			if wait < 0 || wait >= 10*time.Second {
				t.Errorf("it is asked after %v", wait)
			}
			begins[wait.Truncate(time.Second)] = true
		}
		if len(begins) < 4 {
			t.Errorf("50 containers are asked in %d of 10 seconds", len(begins))
		}
	})
}

func TestWithoutProbesAPodIsReady(t *testing.T) {
	run(t, func(w *world) {
		pod := podWith(nil, nil, nil)
		w.manager.AddPod(pod)
		id := w.container("1", runtimestate.StateRunning)
		w.expect(pod, id, true, true, podactions.ProbeUnknown)
		if len(w.manager.pods) != 0 {
			t.Error("a pod without probes is kept")
		}
	})
}

func TestRetainRemovesWhatIsNotKnown(t *testing.T) {
	run(t, func(w *world) {
		w.manager.AddPod(podWith(probe("live"), nil, nil))
		w.manager.Retain(func(types.UID) bool { return true })
		if len(w.manager.pods) != 1 {
			t.Error("a known pod is gone")
		}
		w.manager.Retain(func(types.UID) bool { return false })
		if len(w.manager.pods) != 0 {
			t.Error("an unknown pod is kept")
		}
	})
}
