package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/podruntime"
	"kctl/proto/core"
)

// world is a runtime with one container, what it answers to each kind of probe,
// and what became of it.
type world struct {
	t       *testing.T
	manager *Manager
	begun   time.Time

	mu      sync.Mutex
	status  *podruntime.PodStatus
	answers map[string]Answer // by the command's first word
	err     error
	asked   []string // "COMMAND ID @seconds"
	events  []string
	updates int
}

const uid types.UID = "uid-1"

// run calls do in a bubble of fake time with a Manager that runs, and checks
// that nothing goes on afterwards.
func run(t *testing.T, do func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, begun: time.Now(), answers: map[string]Answer{}}
		w.manager = NewManager(Config{
			Asker: w, Events: w, Clock: clock.RealClock{}, Logger: zap.NewNop(),
			Status: func(types.UID) (*podruntime.PodStatus, error) {
				w.mu.Lock()
				defer w.mu.Unlock()
				return w.status, nil
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = w.manager.Run(ctx) })
		running.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-w.manager.Updates():
					w.mu.Lock()
					w.updates++
					w.mu.Unlock()
				}
			}
		})
		do(w)
		cancel()
		running.Wait()
	})
}

func (w *world) Probe(_ context.Context, target Target) (Answer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := target.Probe.Exec.Command[0]
	w.asked = append(w.asked, fmt.Sprintf("%s %s @%v", name, target.ID.ID, time.Since(w.begun).Seconds()))
	return w.answers[name], w.err
}

func (w *world) ContainerEventf(_ *core.Pod, path, eventType, reason, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, fmt.Sprintf("%s %s %s: %s", path, eventType, reason, fmt.Sprintf(format, args...)))
}

// container makes the runtime have a container in the given state, and says so.
func (w *world) container(id string, state podruntime.ContainerState) podruntime.ContainerID {
	c := &podruntime.ContainerStatus{ID: podruntime.ContainerID{Type: "r", ID: id}, Name: "c", State: state, StartedAt: time.Now()}
	w.mu.Lock()
	if w.status != nil && w.status.Containers[0].ID == c.ID {
		c.StartedAt = w.status.Containers[0].StartedAt
	}
	w.status = &podruntime.PodStatus{UID: uid, IPs: []string{"10.0.0.1"}, Containers: []*podruntime.ContainerStatus{c}}
	w.mu.Unlock()
	w.manager.Changed(uid)
	return c.ID
}

func (w *world) answer(command string, a Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers[command] = a
}

// after lets time pass, and all that happens in it happen.
func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) expectAsked(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.asked, want) {
		w.t.Errorf("asked %q, want %q", w.asked, want)
	}
	w.asked = nil
}

func (w *world) expectAskedInAnyOrder(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	slices.Sort(w.asked)
	w.mu.Unlock()
	w.expectAsked(want...)
}

// forgetAsked returns what was asked since the last time.
func (w *world) forgetAsked() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.asked
	w.asked = nil
	return asked
}

func (w *world) expectEvents(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.events, want) {
		w.t.Errorf("events %q, want %q", w.events, want)
	}
}

func (w *world) expectUpdates(want int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.updates != want {
		w.t.Errorf("%d updates, want %d", w.updates, want)
	}
	w.updates = 0
}

func (w *world) expect(pod *core.Pod, id podruntime.ContainerID, started, ready bool, liveness podruntime.ProbeResult) {
	w.t.Helper()
	m := w.manager
	if s, r, l := m.Started(pod, "c", id), m.Ready(pod, "c", id), m.Results(id).Liveness; s != started || r != ready || l != liveness {
		w.t.Errorf("started %v, ready %v, liveness %v; want %v, %v, %v", s, r, l, started, ready, liveness)
	}
}

// probe is one that asks by a command of one word.
func probe(command string, change ...func(*corev1.Probe)) *corev1.Probe {
	p := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{command}}}}
	for _, f := range change {
		f(p)
	}
	return p
}

func podWith(liveness, readiness, startup *corev1.Probe) *core.Pod {
	return &core.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: uid},
		Spec:       core.PodSpec{Containers: []core.Container{{Name: "c", LivenessProbe: liveness, ReadinessProbe: readiness, StartupProbe: startup}}},
	}
}

var (
	no  = Answer{Failed, "no"}
	yes = Answer{Succeeded, "yes"}
)

func TestReadinessIsAskedAtOnceAndEachPeriod(t *testing.T) {
	run(t, func(w *world) {
		pod := podWith(nil, probe("ready", func(p *corev1.Probe) { p.PeriodSeconds = 5; p.FailureThreshold = 2; p.SuccessThreshold = 2 }), nil)
		w.answer("ready", yes)
		w.manager.AddPod(pod)
		w.after(time.Second)
		w.expectAsked()
		id := w.container("1", podruntime.StateRunning)
		w.expect(pod, id, true, false, podruntime.ProbeUnknown)
		w.after(0)
		w.expectAsked("ready 1 @1") // not a period later
		w.expect(pod, id, true, false, podruntime.ProbeUnknown)
		w.after(5 * time.Second)
		w.expectAsked("ready 1 @6")
		w.expect(pod, id, true, true, podruntime.ProbeUnknown)
		w.expectUpdates(1)

		w.answer("ready", no)
		w.manager.Changed(uid) // being woken is no reason to ask early
		w.after(5 * time.Second)
		w.expect(pod, id, true, true, podruntime.ProbeUnknown)
		w.after(5 * time.Second)
		w.expect(pod, id, true, false, podruntime.ProbeUnknown)
		w.expectAsked("ready 1 @11", "ready 1 @16")
		w.expectUpdates(1)
		want := "spec.containers{c} Warning Unhealthy: Readiness probe failed: no"
		w.expectEvents(want, want)
		// It is asked on, and may be ready again.
		w.answer("ready", yes)
		w.after(10 * time.Second)
		w.expect(pod, id, true, true, podruntime.ProbeUnknown)

		// The next container of the pod begins as not ready.
		w.container("1", podruntime.StateExited)
		w.after(0)
		w.expect(pod, id, true, false, podruntime.ProbeUnknown)
		next := w.container("2", podruntime.StateRunning)
		w.expect(pod, next, true, false, podruntime.ProbeUnknown)
	})
}

func TestInitialDelayIsFromTheContainersStart(t *testing.T) {
	run(t, func(w *world) {
		pod := podWith(probe("live", func(p *corev1.Probe) { p.InitialDelaySeconds = 7; p.PeriodSeconds = 3 }), nil, nil)
		w.manager.AddPod(pod)
		w.after(2 * time.Second)
		w.container("1", podruntime.StateRunning)
		w.after(10 * time.Second)
		w.expectAsked("live 1 @9", "live 1 @12")
	})
}

func TestLivenessFailsOnceForAContainer(t *testing.T) {
	run(t, func(w *world) {
		pod := podWith(probe("live", func(p *corev1.Probe) { p.PeriodSeconds = 1; p.FailureThreshold = 2 }), nil, nil)
		w.manager.AddPod(pod)
		w.after(time.Second)
		id := w.container("1", podruntime.StateRunning)
		w.answer("live", yes)
		w.after(0)
		w.expect(pod, id, true, true, podruntime.ProbeSuccess)
		w.answer("live", no)
		w.after(time.Second)
		w.answer("live", yes)
		w.after(time.Second)
		w.answer("live", no)
		w.after(time.Second)
		w.expect(pod, id, true, true, podruntime.ProbeSuccess) // never twice in a row
		w.after(time.Second)
		w.expect(pod, id, true, true, podruntime.ProbeFailure)
		w.expectUpdates(1)
		w.forgetAsked()
		w.after(time.Minute)
		w.expectAsked() // it is being ended
		w.answer("live", yes)
		next := w.container("2", podruntime.StateRunning)
		w.after(0)
		w.expect(pod, next, true, true, podruntime.ProbeSuccess)
		w.expect(pod, id, true, true, podruntime.ProbeUnknown)
		w.expectAsked("live 2 @65")
	})
}

func TestStartupComesBeforeTheOthers(t *testing.T) {
	run(t, func(w *world) {
		pod := podWith(probe("live"), probe("ready"), probe("start", func(p *corev1.Probe) { p.PeriodSeconds = 2 }))
		w.answer("start", no)
		w.manager.AddPod(pod)
		w.after(time.Second)
		id := w.container("1", podruntime.StateRunning)
		w.after(3 * time.Second)
		w.expectAsked("start 1 @1", "start 1 @3")
		w.expect(pod, id, false, false, podruntime.ProbeSuccess)
		w.answer("start", yes)
		w.answer("ready", yes)
		w.after(time.Second)
		w.expectAskedInAnyOrder("live 1 @5", "ready 1 @5", "start 1 @5")
		w.expect(pod, id, true, true, podruntime.ProbeSuccess)
		w.after(10 * time.Second)
		w.expectAskedInAnyOrder("live 1 @15", "ready 1 @15")

		// The next container has to start again.
		w.answer("start", no)
		next := w.container("2", podruntime.StateRunning)
		w.after(0)
		w.expectAsked("start 2 @15")
		w.expect(pod, next, false, false, podruntime.ProbeSuccess)
		w.after(4 * time.Second)
		if r := w.manager.Results(next); r.Startup != podruntime.ProbeFailure {
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
		id := w.container("1", podruntime.StateRunning)
		w.after(0)
		w.expectAsked("live 1 @1", "live 1 @1", "live 1 @1")
		w.expect(pod, id, true, true, podruntime.ProbeSuccess)
		w.expectUpdates(0)
		w.expectEvents("spec.containers{c} Warning Unhealthy: Liveness probe errored and resulted in unknown state: the runtime is away")
	})
}

func TestWarningsAreSuccesses(t *testing.T) {
	run(t, func(w *world) {
		pod := podWith(nil, probe("ready"), nil)
		w.answer("ready", Answer{Warned, "moved"})
		w.manager.AddPod(pod)
		w.after(time.Second)
		id := w.container("1", podruntime.StateRunning)
		w.after(0)
		w.expect(pod, id, true, true, podruntime.ProbeUnknown)
		w.expectEvents("spec.containers{c} Warning ProbeWarning: Readiness probe warning: moved")
	})
}

func TestEndingPodsKeepOnlyReadiness(t *testing.T) {
	run(t, func(w *world) {
		pod := podWith(probe("live"), probe("ready"), probe("start"))
		w.manager.AddPod(pod)
		w.after(time.Second)
		id := w.container("1", podruntime.StateRunning)
		w.after(0)
		w.expect(pod, id, true, true, podruntime.ProbeSuccess)
		w.manager.StopLivenessAndStartup(uid)
		w.forgetAsked()
		w.answer("ready", no)
		w.answer("live", no)
		w.after(30 * time.Second)
		w.expectAsked("ready 1 @11", "ready 1 @21", "ready 1 @31")
		w.expect(pod, id, true, false, podruntime.ProbeUnknown)
		w.manager.RemovePod(uid)
		w.forgetAsked()
		w.after(time.Minute)
		w.expectAsked()
		if len(w.manager.results) != 0 || len(w.manager.pods) != 0 {
			t.Errorf("left: %v, %v", w.manager.results, w.manager.pods)
		}
	})
}

// A kubelet that starts anew takes what its predecessor told the API, and asks
// the containers that it finds spread over a period.
func TestRestartKeepsWhatWasKnown(t *testing.T) {
	run(t, func(w *world) {
		pod := podWith(probe("live"), probe("ready"), probe("start"))
		yes := true
		pod.Status.ContainerStatuses = []core.ContainerStatus{{Name: "c", ContainerID: "r://1", Ready: true, Started: &yes}}
		id := w.container("1", podruntime.StateRunning) // before the Manager knows the pod
		w.expect(pod, id, true, true, podruntime.ProbeUnknown)
		w.answer("ready", no)
		w.manager.AddPod(pod)
		w.after(0)
		w.expect(pod, id, true, true, podruntime.ProbeSuccess)
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
		w.expect(pod, id, true, false, podruntime.ProbeSuccess)
		// Another container of that name was never ready.
		if other := (podruntime.ContainerID{Type: "r", ID: "2"}); w.manager.Started(pod, "c", other) || w.manager.Ready(pod, "c", other) {
			t.Error("a new container is ready by its predecessor's status")
		}
	})
}

func TestWithoutProbesAPodIsReady(t *testing.T) {
	run(t, func(w *world) {
		pod := podWith(nil, nil, nil)
		w.manager.AddPod(pod)
		id := w.container("1", podruntime.StateRunning)
		w.expect(pod, id, true, true, podruntime.ProbeUnknown)
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
