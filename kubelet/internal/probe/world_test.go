package probe

import (
	"context"
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

	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// world is a runtime with one container, its answers to each kind of probe, and
// the results.
type world struct {
	t       *testing.T
	manager *Manager
	begun   time.Time

	mu      sync.Mutex
	status  *runtimestate.PodStatus
	answers map[string]Answer // by the command's first word
	err     error
	asked   []string // "COMMAND ID @seconds"
	events  []string
	updates int

	// The pod's status in the API is not the pod's own, but reported: it is static.
	apart    bool
	reported *core.PodStatus
}

const uid types.UID = "uid-1"

// run calls do with a running Manager, in fake time, and checks that nothing
// goes on afterwards.
func run(t *testing.T, do func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, begun: time.Now(), answers: map[string]Answer{}}
		w.manager = NewManager(Config{
			Runner: w, Events: w, Clock: clock.RealClock{}, Logger: zap.NewNop(),
			Status: func(types.UID) (*runtimestate.PodStatus, error) {
				w.mu.Lock()
				defer w.mu.Unlock()
				return w.status, nil
			},
			Reported: func(pod *core.Pod) *core.PodStatus {
				w.mu.Lock()
				defer w.mu.Unlock()
				if w.apart {
					return w.reported
				}
				return &pod.Status
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

// container sets the state of a container in the runtime, and reports it.
func (w *world) container(id string, state runtimestate.ContainerState) runtimestate.ContainerID {
	return w.containerStarted(id, state, 0)
}

// containerStarted is container with a start time relative to now.
func (w *world) containerStarted(id string, state runtimestate.ContainerState, from time.Duration) runtimestate.ContainerID {
	c := &runtimestate.ContainerStatus{ID: runtimestate.ContainerID{Type: "r", ID: id}, Name: "c", State: state, StartedAt: time.Now().Add(from)}
	w.mu.Lock()
	if w.status != nil && w.status.Containers[0].ID == c.ID {
		c.StartedAt = w.status.Containers[0].StartedAt
	}
	w.status = &runtimestate.PodStatus{UID: uid, IPs: []string{"10.0.0.1"}, Containers: []*runtimestate.ContainerStatus{c}}
	w.mu.Unlock()
	w.manager.Changed(uid)
	return c.ID
}

// reports sets what the API has of the pod.
func (w *world) reports(status *core.PodStatus) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reported = status
}

func (w *world) answer(command string, a Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers[command] = a
}

// after lets time pass, with everything that happens in it.
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

// forgetAsked returns the probes since the last call.
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

func (w *world) expect(pod *core.Pod, id runtimestate.ContainerID, started, ready bool, liveness podactions.ProbeResult) {
	w.t.Helper()
	m := w.manager
	if s, r, l := m.Started(pod, "c", id), m.Ready(pod, "c", id), m.Results(id).Liveness; s != started || r != ready || l != liveness {
		w.t.Errorf("started %v, ready %v, liveness %v; want %v, %v, %v", s, r, l, started, ready, liveness)
	}
}

// probe is a probe by a command of one word.
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
	no  = Answer{Failure, "no"}
	yes = Answer{Success, "yes"}
)
