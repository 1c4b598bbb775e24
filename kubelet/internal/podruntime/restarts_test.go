package podruntime

import (
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
	"kctl/proto/relay"
)

// toldRestarts puts together what is told of restarts, as the status manager does.
type toldRestarts struct {
	mu  sync.Mutex
	log relay.RestartLog
}

func (l *toldRestarts) note(_ *core.Pod, r relay.Restart) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log.Note(r)
}

func (l *toldRestarts) of(container string, number int32) relay.Restart {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.log.Find(container, number); r != nil {
		return *r
	}
	return relay.Restart{}
}

// inOrder fails the test unless the restart has passed all its moments, and in their order.
func inOrder(t *testing.T, r relay.Restart, waited bool) {
	t.Helper()
	moments := []time.Time{r.Began, r.Ended}
	if waited {
		moments = append(moments, r.BackOffFrom)
	}
	for i, at := range append(moments, r.ImagePulled, r.Created, r.Started) {
		if at.IsZero() || i > 0 && at.Before(moments[min(i, len(moments))-1]) {
			t.Errorf("moment %d is missing, or too early: %+v", i, r)
		}
	}
	if r.Created.Before(r.ImagePulled) || r.Started.Before(r.Created) || r.BackOffFrom.IsZero() == waited {
		t.Errorf("%+v", r)
	}
}

func newToldBed(t *testing.T) (*bed, *toldRestarts) {
	told := &toldRestarts{}
	return newBed(t, func(c *Config) { c.Restarting, c.MaxContainerBackOff = told.note, time.Second }), told
}

func TestCrashesAreToldStepByStep(t *testing.T) {
	b, told := newToldBed(t)
	pod := newPod("crash", shell("main", "exit 3"))
	b.sync(t, pod, SyncOptions{})
	b.until(t, pod, "exited", exited("main", 0))
	b.sync(t, pod, SyncOptions{}) // the first restart is immediate
	b.until(t, pod, "exited again", exited("main", 1))
	first := told.of("main", 1)
	inOrder(t, first, false)
	if first.Cause != relay.CauseExit || first.ExitCode != 3 || first.Reason != "Error" {
		t.Errorf("the first restart: %+v", first)
	}
	waits := b.sync(t, pod, SyncOptions{})
	held := told.of("main", 2)
	if waits.RetryAfter <= 0 || held.BackOffFrom.IsZero() || held.BackOffUntil.Sub(held.BackOffFrom) > time.Second || held.Cause != relay.CauseExit ||
		!held.Created.IsZero() {
		t.Fatalf("held back: %+v, retry after %v", held, waits.RetryAfter)
	}
	b.until(t, pod, "restarted", func(*runtimestate.PodStatus) bool {
		return b.sync(t, pod, SyncOptions{}).Status.Container("main").RestartCount == 2
	})
	again := told.of("main", 2)
	inOrder(t, again, true)
	if again.BackOffFrom != held.BackOffFrom || again.BackOffUntil != held.BackOffUntil || again.Created.Before(again.BackOffUntil) {
		t.Errorf("%+v, held back %+v", again, held)
	}
}

// What the kubelet ends, it tells why.
func TestCausesOfRestarts(t *testing.T) {
	b, told := newToldBed(t)
	pod := newPod("web", shell("main", ready+forever))
	pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{}
	pod.Spec.TerminationGracePeriodSeconds = new(int64)
	first := b.sync(t, pod, SyncOptions{})
	if first.Err != nil {
		t.Fatal(first.Err)
	}
	if r := told.of("main", 0); r.Container != "" {
		t.Errorf("the first start is told as a restart: %+v", r)
	}
	b.untilReady(t, pod)
	b.sync(t, pod, SyncOptions{Probes: func(runtimestate.ContainerID) podactions.ProbeResults {
		return podactions.ProbeResults{Liveness: podactions.ProbeFailure}
	}})
	if r := told.of("main", 1); r.Cause != relay.CauseLiveness || r.ExitCode != 0 { // even without a grace period, it has the time to end itself
		t.Errorf("after its liveness probe: %+v", r)
	}
	inOrder(t, told.of("main", 1), false)

	changed := pod.DeepCopy()
	changed.Spec.Containers[0].Image = "docker.io/library/other:1"
	changed.Spec.Containers[0].ImagePullPolicy = corev1.PullNever
	b.sync(t, changed, SyncOptions{}) // there is no such image
	if r := told.of("main", 2); r.Cause != relay.CauseDefinition || r.Ended.IsZero() || !r.Created.IsZero() {
		t.Errorf("after a change of its image: %+v", r)
	}
	b.until(t, pod, "back", func(*runtimestate.PodStatus) bool {
		return b.sync(t, pod, SyncOptions{}).Status.Container("main").State == runtimestate.StateRunning
	})
	if r := told.of("main", 2); r.Cause != relay.CauseDefinition || r.Started.IsZero() {
		t.Errorf("back to its image: %+v", r)
	}

	status := b.status(t, pod)
	if err := b.containerd.Client().StopPodSandbox(t.Context(), status.Sandboxes[0].ID); err != nil {
		t.Fatal(err)
	}
	b.until(t, pod, "in another sandbox", func(*runtimestate.PodStatus) bool {
		return b.sync(t, pod, SyncOptions{}).Status.Container("main").RestartCount == 3
	})
	if r := told.of("main", 3); r.Cause != relay.CauseSandbox || r.Ended.IsZero() || r.Started.IsZero() {
		t.Errorf("after its sandbox was lost: %+v", r)
	}
}

// What the kubelet ends for good has no restart to tell of.
func TestOnesThatEndForGoodAreNoRestarts(t *testing.T) {
	b, told := newToldBed(t)
	pod := newPod("once", shell("main", forever), shell("other", forever), shell("hook", forever))
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.TerminationGracePeriodSeconds = new(int64)
	pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{}
	pod.Spec.Containers[2].Lifecycle = &corev1.Lifecycle{PostStart: exec("exit 7")}
	b.sync(t, pod, SyncOptions{})
	b.sync(t, pod, SyncOptions{Probes: func(runtimestate.ContainerID) podactions.ProbeResults {
		return podactions.ProbeResults{Liveness: podactions.ProbeFailure}
	}})
	b.until(t, pod, "ended", exited("main", 0))
	b.until(t, pod, "ended by its hook", exited("hook", 0))
	for _, name := range []string{"main", "hook"} {
		if r := told.of(name, 1); r.Container != "" {
			t.Errorf("%+v", r)
		}
	}
}

// One that the kubelet ends again is held back from its end on, and that is told at once.
func TestABackOffAfterAKillIsTold(t *testing.T) {
	told := &toldRestarts{}
	b := newBed(t, func(c *Config) { c.Restarting = told.note })
	pod := newPod("unwell", shell("main", forever))
	pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{}
	pod.Spec.TerminationGracePeriodSeconds = new(int64)
	fails := SyncOptions{Probes: func(runtimestate.ContainerID) podactions.ProbeResults {
		return podactions.ProbeResults{Liveness: podactions.ProbeFailure}
	}}
	b.sync(t, pod, SyncOptions{})
	b.sync(t, pod, fails) // the first restart is immediate
	held := b.sync(t, pod, fails)
	want := told.of("main", 2)
	if held.RetryAfter <= 0 || want.Cause != relay.CauseLiveness || want.BackOffFrom.Before(want.Ended) ||
		want.BackOffUntil.Sub(want.Ended) != initialCrashBackOff {
		t.Fatalf("%+v, retry after %v", want, held.RetryAfter)
	}
	b.sync(t, pod, SyncOptions{})
	if again := told.of("main", 2); again != want {
		t.Errorf("later it is %+v, was %+v", again, want)
	}
}

// An init container that runs again in a new sandbox is told of, although its record is removed.
func TestInitContainersOfANewSandboxAreTold(t *testing.T) {
	b, told := newToldBed(t)
	pod := newPod("lost", shell("main", forever))
	pod.Spec.InitContainers = []core.Container{shell("init", "exit 0")}
	b.sync(t, pod, SyncOptions{})
	b.until(t, pod, "initialized", exited("init", 0))
	first := b.sync(t, pod, SyncOptions{})
	if err := b.containerd.Client().StopPodSandbox(t.Context(), first.Status.Sandboxes[0].ID); err != nil {
		t.Fatal(err)
	}
	b.sync(t, pod, SyncOptions{})
	if r := told.of("init", 1); r.Cause != relay.CauseSandbox || r.Reason != "Completed" || r.Started.IsZero() {
		t.Errorf("the init container: %+v", r)
	}
}
