package pods

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/kubectl/internal/command/frame"
	"kctl/proto/core"
)

// For a pod that is stuck, the reason is shown below the trace.
func TestTraceSaysWhatAPodWaitsFor(t *testing.T) {
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus, message string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: kind, Status: status, Reason: "Because", Message: message}}}
	}
	probe := core.Event{Type: corev1.EventTypeWarning, Reason: "Unhealthy", Message: "Readiness probe failed"}
	started := core.Event{Reason: "Started"}
	running := corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
		{Name: "c", ContainerID: "containerd://1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
	}}
	crashing := corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &metav1.Time{}, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "c", ContainerID: "containerd://1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}},
	}}}
	for name, test := range map[string]struct {
		status corev1.PodStatus
		node   string
		events []core.Event
		want   string
	}{
		"crashing": {crashing, "n", nil,
			"\nNow: getting ready: CrashLoopBackOff (container c last ended with exit code 3)\n(\"kctl logs web -c c --previous\" prints what it has said)\n"},
		"no such node": {corev1.PodStatus{Phase: corev1.PodPending}, "n", nil,
			"\nNow: starting: the kubelet of node n has not taken it up yet (\"kctl get node n\" tells whether there is such a node, and whether it is ready)\n"},
		"no room": {condition(corev1.PodScheduled, corev1.ConditionFalse, "0/1 nodes"), "", nil,
			"\nNow: scheduling: Because: 0/1 nodes\n(\"kctl explain-schedule pod/web\" tells what each node answers)\n"},
		"unseen": {corev1.PodStatus{Phase: corev1.PodPending}, "", nil,
			"\nNow: scheduling: default-scheduler has not looked at it yet (\"kctl doctor\" tells whether it runs)\n(\"kctl explain-schedule pod/web\" " +
				"tells what each node answers)\n"},
		"bad probe":  {running, "n", []core.Event{started, probe}, "\nNow: getting ready: Unhealthy: Readiness probe failed\n"},
		"it is well": {condition(corev1.PodReady, corev1.ConditionTrue, ""), "n", nil, ""},
	} {
		var out bytes.Buffer
		tracing := traceOptions{CLI: frame.New(frame.Streams{Out: &out}, clock.RealClock{})}
		pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: test.status}
		pod.Spec.NodeName = test.node
		pod.Spec.Containers = []core.Container{{Name: "c"}}
		if err := tracing.printWaterfall(&traceState{pod: pod, events: test.events}); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.HasSuffix(got, test.want) || strings.Contains(got, "Now:") != (test.want != "") {
			t.Errorf("%s:\n%s\nwant at its end %q", name, got, test.want)
		}
	}
}

// What holds up a pod that a gate or a finalizer holds up is named, whatever else it is.
func TestTraceNamesGatesAndFinalizers(t *testing.T) {
	gated := &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", CreationTimestamp: metav1.Now()}}
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/a"}, {Name: "example.com/b"}}
	held := &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", DeletionTimestamp: &metav1.Time{}, Finalizers: []string{"example.com/c"}}}
	held.Status.Phase = corev1.PodSucceeded
	for pod, want := range map[*core.Pod]string{
		gated: "\n(it waits until its scheduling gates are removed by whoever has set them: example.com/a, example.com/b)\n",
		held:  "\nNow: the pod is being deleted: it stays until its finalizers are removed by whoever has set them: example.com/c\n",
	} {
		var out bytes.Buffer
		tracing := traceOptions{CLI: frame.New(frame.Streams{Out: &out}, clock.RealClock{})}
		if err := tracing.printWaterfall(&traceState{pod: pod}); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.HasSuffix(got, want) {
			t.Errorf("%s\nwant at its end %q", got, want)
		}
	}
	var out bytes.Buffer
	tracing := traceOptions{CLI: frame.New(frame.Streams{Out: &out}, clock.RealClock{})}
	if err := tracing.printJSON(&traceState{pod: held}); err != nil || !strings.Contains(out.String(),
		`"problem": "the pod is being deleted: it stays until its finalizers`) {
		t.Errorf("%s, %v", out.String(), err)
	}
}
