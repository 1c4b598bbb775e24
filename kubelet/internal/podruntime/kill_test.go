package podruntime

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
	"kctl/proto/relay"
)

func exec(script string) *corev1.LifecycleHandler {
	return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", script}}}
}

// stubborn is a container that ignores SIGTERM.
func stubborn(name string) core.Container {
	c := shell(name, "")
	c.Command = []string{"/bin/sh", "-c", "trap '' TERM; " + ready + forever}
	return c
}

// ready is the line of a script that says that everything before it is done;
// start waits for it.
const ready = "echo ready; "

// start runs a pod, and waits until all containers whose script has that line
// are ready.
func (b *bed) start(t *testing.T, pod *core.Pod) *runtimestate.RunningPod {
	t.Helper()
	r := b.sync(t, pod, SyncOptions{})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	b.untilReady(t, pod)
	return r.Status.RunningPod(b.Name())
}

func (b *bed) untilReady(t *testing.T, pod *core.Pod) {
	t.Helper()
	for _, c := range pod.Spec.Containers {
		if strings.Contains(strings.Join(c.Command, " "), ready) {
			b.until(t, pod, "ready", func(*runtimestate.PodStatus) bool { return strings.Contains(b.log(t, pod, c.Name, 0), "ready\n") })
		}
	}
}

func TestPreStopRunsInsideTheGracePeriod(t *testing.T) {
	b := newBed(t)
	c := shell("main", ready+forever)
	c.Lifecycle = &corev1.Lifecycle{PreStop: exec("echo stopped by hook > /dev/termination-log")}
	slow := shell("slow", ready+forever)
	slow.Lifecycle = &corev1.Lifecycle{PreStop: exec("sleep 1000")}
	pod := newPod("hooks", c, slow)
	grace := int64(5) // enough for the good hook on a busy machine
	pod.Spec.TerminationGracePeriodSeconds = &grace
	running := b.start(t, pod)
	if err := b.KillPod(t.Context(), pod, running, nil); err != nil {
		t.Fatal(err)
	}
	ended := b.status(t, pod)
	if main := ended.Container("main"); !main.Succeeded() || main.Message != "stopped by hook\n" {
		t.Errorf("main ended as %+v", main)
	}
	// A hook that used up the grace period leaves enough time to end well.
	if slow := ended.Container("slow"); !slow.Succeeded() {
		t.Errorf("slow ended as %+v", slow)
	}
	if !b.events.has("FailedPreStopHook spec.containers{slow}: PreStopHook failed: not done within the grace period of 5s") {
		t.Error("no event tells of the hook that did not end")
	}
}

// Sidecars' hooks run as soon as their pod is to end, before their turn comes. Without grace
// nobody has a turn.
func TestSidecarsHooksRunBeforeTheirTurn(t *testing.T) {
	b := newBed(t)
	always := corev1.ContainerRestartPolicyAlways
	sidecar := shell("sidecar", forever)
	sidecar.RestartPolicy, sidecar.Lifecycle = &always, &corev1.Lifecycle{PreStop: exec("echo hooked > /proc/1/fd/1")}
	pod := newPod("sidecars", stubborn("main"))
	pod.Spec.InitContainers = []core.Container{sidecar}
	long := int64(3600)
	pod.Spec.TerminationGracePeriodSeconds = &long
	if r := b.sync(t, pod, SyncOptions{}); r.Err != nil {
		t.Fatal(r.Err)
	}
	running := b.start(t, pod)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.KillPod(ctx, pod, running, nil) }()
	b.until(t, pod, "told", func(*runtimestate.PodStatus) bool { return strings.Contains(b.log(t, pod, "sidecar", 0), "hooked\n") })
	if now := b.status(t, pod); now.Container("sidecar").State != runtimestate.StateRunning || now.Container("main").State != runtimestate.StateRunning {
		t.Errorf("sidecar %+v, main %+v", now.Container("sidecar"), now.Container("main"))
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatalf("the first KillPod = %v", err)
	}
	now := int64(0)
	if err := b.KillPod(t.Context(), pod, running, &now); err != nil {
		t.Fatal(err)
	}
	ended := b.status(t, pod)
	if main, last := ended.Container("main"), ended.Container("sidecar"); main.State != runtimestate.StateExited || last.State != runtimestate.StateExited {
		t.Errorf("main is %+v, the sidecar %+v", main, last)
	}
}

func TestGraceCanBeCutShort(t *testing.T) {
	b := newBed(t)
	pod := newPod("stubborn", stubborn("main"))
	long := int64(3600)
	pod.Spec.TerminationGracePeriodSeconds = &long
	running := b.start(t, pod)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.KillPod(ctx, pod, running, nil) }()
	b.untilEvent(t, "Killing spec.containers{main}: Stopping container main")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatalf("the first KillPod = %v", err)
	}
	if !b.status(t, pod).ReadySandbox().Ready {
		t.Error("the sandbox was stopped under a running container")
	}
	now := int64(0)
	if err := b.KillPod(t.Context(), pod, running, &now); err != nil {
		t.Fatal(err)
	}
	if main := b.status(t, pod).Container("main"); main.State != runtimestate.StateExited || main.ExitCode != 137 {
		t.Errorf("main is %+v", main)
	}
}

func (b *bed) untilEvent(t *testing.T, part string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !b.events.has(part) {
		select {
		case <-ctx.Done():
			t.Fatalf("no event %q", part)
		case <-tick.C:
		}
	}
}

// A pod that was removed from every source while the kubelet was away is ended
// by the rules that the runtime has recorded.
func TestForgottenPodEndsByItsOwnRules(t *testing.T) {
	b := newBed(t)
	c := shell("main", ready+forever)
	c.Lifecycle = &corev1.Lifecycle{PreStop: exec("echo remembered > /dev/termination-log")}
	pod := newPod("forgotten", c)
	grace := int64(5)
	pod.Spec.TerminationGracePeriodSeconds = &grace
	b.start(t, pod)
	pods, err := b.Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.KillPod(t.Context(), nil, pods[0], nil); err != nil {
		t.Fatal(err)
	}
	if main := b.status(t, pod).Container("main"); !main.Succeeded() || main.Message != "remembered\n" {
		t.Errorf("main ended as %+v", main)
	}
	// Killing what has ended or is gone succeeds.
	if err := b.KillPod(t.Context(), nil, pods[0], nil); err != nil {
		t.Errorf("again: %v", err)
	}
	if err := b.RemovePod(t.Context(), pods[0]); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.KillPod(t.Context(), nil, pods[0], nil), b.RemovePod(t.Context(), pods[0])); err != nil {
		t.Errorf("once it is gone: %v", err)
	}
}

func TestFailedPostStartEndsTheContainer(t *testing.T) {
	b := newBed(t)
	c := shell("main", forever)
	c.Lifecycle = &corev1.Lifecycle{PostStart: exec("echo no good; exit 7")}
	good := shell("good", "mkdir -p /tmp/www; echo hi > /tmp/www/ok; cd /tmp/www; httpd -p 8080; "+ready+forever)
	good.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}
	good.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{
		Path: "/ok", Port: intstr.FromString("http"), Scheme: corev1.URISchemeHTTPS,
	}}}
	pod := newPod("poststart", c, good)
	r := b.sync(t, pod, SyncOptions{})
	if w := r.Waiting["main"]; w.Reason != runtimestate.ReasonPostStartHook || !strings.Contains(w.Message, "exited with 7: no good") {
		t.Errorf("waiting %+v", w)
	}
	if main := r.Status.Container("main"); main == nil || main.State != runtimestate.StateExited {
		t.Errorf("main is %+v", main)
	}
	if r.Err == nil || len(r.Status.Running()) != 1 {
		t.Errorf("Err = %v, running %v", r.Err, r.Status.Running())
	}
	b.untilReady(t, pod)
	grace := int64(5)
	if err := b.KillPod(t.Context(), pod, r.Status.RunningPod(b.Name()), &grace); err != nil {
		t.Fatal(err)
	}
	if !b.events.has("LifecycleHTTPFallback") || b.events.has("FailedPreStopHook") {
		t.Error("no event tells that the httpGet hook was answered without TLS")
	}
}

// A hook that hangs holds up only its own pod, and only until that is to end. Its container is left to what
// ends the pod, which knows how long it may take, and a kubelet that stops leaves it as it is.
func TestHangingPostStartEndsWithThePod(t *testing.T) {
	b := newBed(t)
	c := shell("main", forever)
	c.Lifecycle = &corev1.Lifecycle{PostStart: exec("sleep 1000")}
	pod := newPod("hangs", c, shell("behind", forever))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan SyncResult, 1)
	go func() { done <- b.SyncPod(ctx, pod, &runtimestate.PodStatus{UID: pod.UID}, SyncOptions{}) }()
	b.untilEvent(t, "Started spec.containers{main}")
	cancel()
	if r := <-done; r.Err == nil || len(r.Status.Running()) != 1 || r.Status.Container("behind") != nil {
		t.Errorf("Err = %v, %s", r.Err, show(r.Status))
	}
	left := b.status(t, pod)
	if main := left.Container("main"); main.State != runtimestate.StateRunning || b.events.has("Killing") {
		t.Errorf("main is %+v", main)
	}
	if err := b.KillPod(t.Context(), pod, left.RunningPod(b.Name()), nil); err != nil {
		t.Fatal(err)
	}
	if main := b.status(t, pod).Container("main"); main.State != runtimestate.StateExited {
		t.Errorf("main is %+v", main)
	}
	if !b.events.has("FailedPostStartHook spec.containers{main}: PostStartHook failed") {
		t.Error("no event tells of the hook")
	}
}

// What a hook prints may be a secret, and more users may read events than logs.
func TestEventsDoNotTellWhatAHookPrints(t *testing.T) {
	b := newBed(t)
	hook := exec("echo s3cret; exit 7")
	first, second := shell("first", forever), shell("second", ready+forever)
	first.Lifecycle, second.Lifecycle = &corev1.Lifecycle{PostStart: hook}, &corev1.Lifecycle{PreStop: hook}
	pod := newPod("secretive", first, second)
	r := b.sync(t, pod, SyncOptions{})
	b.untilReady(t, pod)
	if err := b.KillPod(t.Context(), pod, r.Status.RunningPod(b.Name()), nil); err != nil {
		t.Fatal(err)
	}
	if !b.events.has("FailedPostStartHook spec.containers{first}: PostStartHook failed") ||
		!b.events.has("FailedPreStopHook spec.containers{second}: PreStopHook failed") || b.events.has("s3cret") {
		t.Errorf("events %q", b.events.lines)
	}
}

func TestMessageFromLogs(t *testing.T) {
	b := newBed(t)
	c := shell("main", "for i in $(seq 100); do echo line $i; done; exit 1")
	c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	pod := newPod("logs", c)
	b.start(t, pod)
	message := b.until(t, pod, "exited", exited("main", 0)).Container("main").Message
	if lines := strings.Split(strings.TrimSpace(message), "\n"); len(lines) != 80 || lines[0] != "line 21" || lines[79] != "line 100" {
		t.Errorf("message has %d lines: %q", len(lines), message)
	}
}

func TestUnfitContainersAreReplaced(t *testing.T) {
	b := newBed(t)
	c := shell("main", forever)
	c.LivenessProbe = &corev1.Probe{}
	pod := newPod("unfit", c, shell("side", forever))
	first := b.start(t, pod)
	failing := func(id runtimestate.ContainerID) podactions.ProbeResults {
		return podactions.ProbeResults{Liveness: podactions.ProbeFailure}
	}
	r := b.sync(t, pod, SyncOptions{Probes: failing})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	main := r.Status.Container("main")
	if main.State != runtimestate.StateRunning || main.RestartCount != 1 || len(r.Status.Running()) != 2 {
		t.Fatalf("%s", show(r.Status))
	}
	// The previous container's end is known without asking again.
	if before := r.Status.ContainerByID(first.Containers[1].ID); before.State != runtimestate.StateExited {
		if other := r.Status.ContainerByID(first.Containers[0].ID); other.State != runtimestate.StateExited {
			t.Errorf("neither %+v nor %+v ended", before, other)
		}
	}
	if !b.events.has("Killing spec.containers{main}: Container main failed liveness probe, will be restarted") {
		t.Error("no event tells why")
	}
}

// A container that fails its liveness probe after a run that was longer than its back-off is restarted at
// once, however often and whatever its exit code: held back, one that ended well would be done.
func TestLivenessRestartsOfWhatEndsWell(t *testing.T) {
	b := newBed(t)
	pod := newPod("unwell", shell("main", endsWell))
	pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{}
	b.sync(t, pod, SyncOptions{})
	for count := range int32(3) {
		b.until(t, pod, "ready", func(*runtimestate.PodStatus) bool {
			return strings.Contains(b.log(t, pod, "main", count), "ready\n")
		})
		status := b.status(t, pod).Clone()
		for i, c := range status.Containers { // as if a minute had passed
			before := *c
			before.FinishedAt = c.FinishedAt.Add(-time.Minute)
			status.Containers[i] = &before
		}
		r := b.SyncPod(t.Context(), pod, status, SyncOptions{Probes: func(runtimestate.ContainerID) podactions.ProbeResults {
			return podactions.ProbeResults{Liveness: podactions.ProbeFailure}
		}})
		if main := r.Status.Container("main"); r.Err != nil || main.State != runtimestate.StateRunning || main.RestartCount != count+1 {
			t.Fatalf("%v %v\n%s", r.Err, r.Waiting, show(r.Status))
		}
	}
}

func TestEphemeralContainerSeesItsTarget(t *testing.T) {
	b := newBed(t)
	pod := newPod("debug", shell("main", "exec sleep 4242"))
	b.start(t, pod)
	e := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon(shell("look", "ps | grep -v grep | grep -c 4242"))}
	e.TargetContainerName = "main"
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{e}
	if r := b.sync(t, pod, SyncOptions{}); r.Err != nil {
		t.Fatal(r.Err)
	}
	b.until(t, pod, "looked into", exited("look", 0))
	if log := b.log(t, pod, "look", 0); log == "0\n" {
		t.Errorf("it sees %q processes", log)
	}
	if !b.events.has("Started spec.ephemeralContainers{look}") {
		t.Error("no event for the ephemeral container")
	}
}

func TestEndedPodStartsNothing(t *testing.T) {
	b := newBed(t)
	pod := newPod("ended", shell("main", forever))
	ctx, cancel := context.WithCancel(t.Context())
	r := b.SyncPod(ctx, pod, &runtimestate.PodStatus{UID: pod.UID}, SyncOptions{Prepare: func(context.Context) error { cancel(); return nil }})
	if !errors.Is(r.Err, context.Canceled) || len(r.Status.Running()) > 0 || r.Status.ReadySandbox() == nil {
		t.Errorf("Err = %v, %s", r.Err, show(r.Status))
	}
	failing := errors.New("no volume")
	r = b.sync(t, pod, SyncOptions{Prepare: func(context.Context) error { return failing }})
	if !errors.Is(r.Err, failing) || len(r.Status.Containers) > 0 {
		t.Errorf("Err = %v, %s", r.Err, show(r.Status))
	}
	held := newPod("held", shell("main", forever)) // its sandbox takes long enough for the image to be looked for
	if r = b.sync(t, held, SyncOptions{Prepare: func(context.Context) error { return failing }}); !errors.Is(r.Err, failing) {
		t.Errorf("Err = %v, %s", r.Err, show(r.Status))
	}
	if b.events.has("Pulled") {
		t.Error("an image is told of for a container that waits for a volume, as it would be at each try")
	}
}

func TestGracePeriod(t *testing.T) {
	seconds := func(n int64) *int64 { return &n }
	c := &core.Container{LivenessProbe: &corev1.Probe{TerminationGracePeriodSeconds: seconds(5)}, StartupProbe: &corev1.Probe{}}
	for _, g := range []struct {
		name           string
		deletion, spec *int64
		cause          relay.Cause
		override       *int64
		want           time.Duration
	}{
		{"nothing said", nil, nil, "", nil, minimumGrace},
		{"spec", nil, seconds(30), "", nil, 30 * time.Second},
		{"probe", nil, seconds(30), relay.CauseLiveness, nil, 5 * time.Second},
		{"probe without its own", nil, seconds(30), relay.CauseStartup, nil, 30 * time.Second},
		{"deletion", seconds(9), seconds(30), relay.CauseLiveness, nil, 9 * time.Second},
		{"override", seconds(9), seconds(30), "", seconds(0), 0},
		{"negative", nil, seconds(-1), "", nil, 0},
		{"for ever", nil, seconds(math.MaxInt64), "", nil, 100 * 365 * 24 * time.Hour},
	} {
		pod := &core.Pod{}
		pod.DeletionGracePeriodSeconds, pod.Spec.TerminationGracePeriodSeconds = g.deletion, g.spec
		if got := gracePeriod(pod, c, g.cause, g.override); got != g.want {
			t.Errorf("%s: %v, want %v", g.name, got, g.want)
		}
	}
}
