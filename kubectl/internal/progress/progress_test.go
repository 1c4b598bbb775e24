package progress

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/proto/core"
)

// stage is a pod at some point of its start.
func stage(change func(*core.Pod)) *core.Pod {
	pod := &core.Pod{}
	pod.Name = "web"
	pod.Spec.Containers = []core.Container{{Name: "c", Image: "nginx"}}
	if change != nil {
		change(pod)
	}
	return pod
}

// probed is an event about a container's probes, at a second of the pod's life.
func probed(second int64, fieldPath, reason, message string) core.Event {
	event := core.Event{Type: corev1.EventTypeWarning, Reason: reason, Message: message, LastTimestamp: metav1.Unix(second, 0)}
	event.InvolvedObject.FieldPath = fieldPath
	return event
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func TestLook(t *testing.T) {
	on := func(pod *core.Pod) { pod.Spec.NodeName = "n1" }
	status := func(pod *core.Pod, s core.ContainerStatus) {
		s.Name = "c"
		pod.Status.ContainerStatuses = []core.ContainerStatus{s}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	ended := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error"}}
	}
	cases := []struct {
		name    string
		pod     *core.Pod
		events  []core.Event
		want    string // the finished steps, then the current one
		problem string
		ended   bool
		failed  bool
	}{
		{name: "events before the pod's node", pod: stage(nil), events: []core.Event{{Reason: "Pulling",
			Source: corev1.EventSource{Component: "kubelet", Host: "n2"}}},
			want: "queued, scheduled to n2 | pulling nginx"},
		{name: "what the status will tell", pod: stage(on), events: []core.Event{{Type: "Warning", Reason: "Failed", Message: "Error: ErrImagePull"}},
			want: "queued, scheduled to n1 |"},
		{name: "new", pod: stage(nil), want: "queued | scheduling"},
		{name: "no room", pod: stage(func(p *core.Pod) {
			p.Status.Conditions = []core.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
				Message: "0/1 nodes are available: 1 Insufficient cpu."}}
		}), want: "queued | scheduling", problem: "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu."},
		{name: "scheduled", pod: stage(on), want: "queued, scheduled to n1 |"},
		{name: "pulling", pod: stage(on), events: []core.Event{{Reason: "Pulling"}}, want: "queued, scheduled to n1 | pulling nginx"},
		{name: "pulled", pod: stage(on), events: []core.Event{{Reason: "Pulling"}, {Reason: "Pulled"}},
			want: "queued, scheduled to n1, image there: nginx | creating"},
		{name: "no such image", pod: stage(func(p *core.Pod) {
			on(p)
			status(p, core.ContainerStatus{State: waiting("ImagePullBackOff", `Back-off pulling image "nginx"`)})
		}), events: []core.Event{{Reason: "Pulling"}}, want: "queued, scheduled to n1 | pulling nginx", problem: `ImagePullBackOff: Back-off pulling image "nginx"`},
		{name: "creating is no problem", pod: stage(func(p *core.Pod) {
			on(p)
			status(p, core.ContainerStatus{State: waiting("ContainerCreating", "")})
		}), want: "queued, scheduled to n1 |"},
		{name: "no sandbox", pod: stage(on), events: []core.Event{{Type: "Warning", Reason: "FailedCreatePodSandBox", Message: "no CNI"}},
			want: "queued, scheduled to n1 |", problem: "FailedCreatePodSandBox: no CNI"},
		{name: "other name servers", pod: stage(on), events: []core.Event{{Type: "Warning", Reason: "MissingClusterDNS", Message: "falling back"}},
			want: "queued, scheduled to n1 |"},
		{name: "started, not ready", pod: stage(func(p *core.Pod) {
			on(p)
			status(p, core.ContainerStatus{State: running, ContainerID: "x"})
		}), want: "queued, scheduled to n1, image there: nginx, created, started | getting ready"},
		{name: "ready", pod: stage(func(p *core.Pod) {
			on(p)
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []core.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}), want: "queued, scheduled to n1, image there: nginx, created, started, ready |", ended: true},
		{name: "completed", pod: stage(func(p *core.Pod) { on(p); p.Status.Phase = corev1.PodSucceeded }),
			want: "queued, scheduled to n1, image there: nginx, created, started, completed |", ended: true},
		{name: "failed", pod: stage(func(p *core.Pod) {
			on(p)
			p.Status.Phase = corev1.PodFailed
			status(p, core.ContainerStatus{State: ended(3)})
		}), want: "queued, scheduled to n1, image there: nginx, created, started, failed |", ended: true, failed: true,
			problem: "container c ended with exit code 3 (Error)"},
		{name: "crashing", pod: stage(func(p *core.Pod) {
			on(p)
			status(p, core.ContainerStatus{ContainerID: "x", State: waiting("CrashLoopBackOff", "back-off 10s"), LastTerminationState: ended(2)})
		}), want: "queued, scheduled to n1, image there: nginx, created, started | getting ready",
			problem: "CrashLoopBackOff: back-off 10s (container c last ended with exit code 2)"},
		{name: "killed by its probe", pod: stage(func(p *core.Pod) {
			on(p)
			last := ended(0)
			last.Terminated.StartedAt = metav1.Unix(10, 0)
			status(p, core.ContainerStatus{Name: "c", ContainerID: "x", State: waiting("CrashLoopBackOff", "back-off 10s"), LastTerminationState: last})
		}), events: []core.Event{
			probed(20, "spec.containers{c}", "Unhealthy", "Liveness probe failed: HTTP 500"),
			probed(20, "spec.containers{c}", "Killing", "Container c failed liveness probe, will be restarted"),
			probed(9, "spec.containers{c}", "Unhealthy", "Liveness probe failed: refused"), probed(21, "spec.containers{c}", "Unhealthy", "Readiness probe failed"),
			probed(21, "spec.containers{other}", "Unhealthy", "Liveness probe failed"),
		},
			want:    "queued, scheduled to n1, image there: nginx, created, started | getting ready",
			problem: "CrashLoopBackOff: back-off 10s (container c last ended with exit code 0); it was killed: Liveness probe failed: HTTP 500"},
		{name: "killed by its probe in an earlier run, and its probe has failed since", pod: stage(func(p *core.Pod) {
			on(p)
			last := ended(0)
			last.Terminated.StartedAt = metav1.Unix(10, 0)
			status(p, core.ContainerStatus{Name: "c", ContainerID: "x", State: waiting("CrashLoopBackOff", "back-off 10s"), LastTerminationState: last})
		}), events: []core.Event{
			probed(9, "spec.containers{c}", "Killing", "Container c failed liveness probe, will be restarted"),
			probed(11, "spec.containers{c}", "Unhealthy", "Liveness probe failed: refused"),
		},
			want:    "queued, scheduled to n1, image there: nginx, created, started | getting ready",
			problem: "CrashLoopBackOff: back-off 10s (container c last ended with exit code 0)"},
		{name: "held by a finalizer", pod: stage(func(p *core.Pod) {
			on(p)
			p.DeletionTimestamp, p.Finalizers = &metav1.Time{}, []string{"example.com/a", "example.com/b"}
		}), want: "queued, scheduled to n1 |",
			problem: "the pod is being deleted: it stays until its finalizers are removed by whoever has set them: example.com/a, example.com/b"},
		{name: "crashing for a reason", pod: stage(func(p *core.Pod) {
			on(p)
			last := ended(128)
			last.Terminated.Reason, last.Terminated.Message = "StartError", "/nosuch: no such file"
			status(p, core.ContainerStatus{ContainerID: "x", State: waiting("CrashLoopBackOff", "back-off 10s"), LastTerminationState: last})
		}), want: "queued, scheduled to n1, image there: nginx, created, started | getting ready",
			problem: "CrashLoopBackOff: back-off 10s (container c last ended with exit code 128: StartError: /nosuch: no such file)"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			view := Look(c.pod, c.events)
			var done []string
			active := ""
			for _, s := range view.Steps {
				switch s.State {
				case Done:
					done = append(done, s.Text)
				case Active:
					active = " " + s.Text
				case Waiting:
				}
			}
			if got := strings.Join(done, ", ") + " |" + active; got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if view.Problem != c.problem || view.Ended != c.ended || view.Failed != c.failed {
				t.Errorf("problem %q, ended %v, failed %v; want %q, %v, %v", view.Problem, view.Ended, view.Failed, c.problem, c.ended, c.failed)
			}
		})
	}
}

func TestPlainSaysEverythingOnce(t *testing.T) {
	var out bytes.Buffer
	display := &Plain{Out: &out}
	first := Look(stage(nil), nil)
	display.Show(first)
	display.Show(first)
	display.Show(Look(stage(func(p *core.Pod) { p.Spec.NodeName = "n1" }), []core.Event{{Reason: "Pulling"}}))
	want := "queued\nscheduled to n1\npulling nginx\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestLiveKeepsDoneStepsAndClearsTheRest(t *testing.T) {
	var out bytes.Buffer
	clock := clocktesting.NewFakePassiveClock(time.Unix(100, 0))
	display := &Live{Out: &out, Width: 30, Clock: clock}
	display.Show(Look(stage(nil), nil))
	clock.SetTime(clock.Now().Add(1500 * time.Millisecond))
	display.Show(Look(stage(func(p *core.Pod) {
		p.Spec.NodeName = "n1"
		p.Status.ContainerStatuses = []core.ContainerStatus{{Name: "c", State: waiting("ErrImagePull", "no such image in the registry")}}
	}), []core.Event{{Reason: "Pulling"}}))
	display.Close()
	want := "✓ queued  0s\n" + clearLine + "… scheduling  0s" +
		clearLine + "✓ scheduled to n1  1.5s\n" +
		"! ErrImagePull: no such image in the registry\n" + clearLine + "… pulling nginx  0s  ErrImag…" + clearLine
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
}

// A problem that has no room in the moving line is told in full, once, however
// often it is drawn and however long the back-off is by then.
func TestLiveTellsLongProblemsOnce(t *testing.T) {
	var out bytes.Buffer
	display := &Live{Out: &out, Width: 40, Clock: clocktesting.NewFakePassiveClock(time.Unix(100, 0))}
	for _, message := range []string{"back-off 10s restarting failed container", "back-off 20s restarting failed container",
		"back-off 20s restarting failed container"} {
		display.Show(Look(stage(func(p *core.Pod) {
			p.Spec.NodeName = "n1"
			p.Status.ContainerStatuses = []core.ContainerStatus{{Name: "c", State: waiting("CrashLoopBackOff", message)}}
		}), nil))
		display.Tick()
	}
	if got := strings.Count(out.String(), "! CrashLoopBackOff: back-off 10s restarting failed container\n"); got != 1 || strings.Count(out.String(), "! ") != 1 {
		t.Errorf("got %q", out.String())
	}
	out.Reset()
	display = &Live{Out: &out, Width: 120, Clock: display.Clock}
	display.Show(Look(stage(func(p *core.Pod) {
		p.Spec.NodeName = "n1"
		p.Status.ContainerStatuses = []core.ContainerStatus{{Name: "c", State: waiting("ErrImagePull", "not found")}}
	}), nil))
	if strings.Contains(out.String(), "! ") {
		t.Errorf("a short problem is told twice: %q", out.String())
	}
}

// Nobody pulls before the kubelet says so: its disk may hang.
func TestNow(t *testing.T) {
	pod := &core.Pod{Spec: corev1.PodSpec{NodeName: "n1", Containers: []core.Container{{Name: "c", Image: "nginx"}}}}
	for want, events := range map[string][]core.Event{
		"scheduled to n1, and the node prepares it": nil,
		"pulling nginx": {{Reason: "Pulling"}},
		"scheduled to n1, and the node prepares it: FailedMount: does its disk hang?": {{Type: corev1.EventTypeWarning, Reason: "FailedMount",
			Message: "does its disk hang?"}},
	} {
		if got := Look(pod, events).Now(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
