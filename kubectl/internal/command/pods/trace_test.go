package pods

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/timeline"
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
	for name, test := range map[string]struct {
		status corev1.PodStatus
		node   string
		events []core.Event
		want   string
	}{
		"no room":    {condition(corev1.PodScheduled, corev1.ConditionFalse, "0/1 nodes"), "", nil, "\nNow: scheduling: Because: 0/1 nodes\n(\"kctl explain-schedule pod/web\" tells what each node answers)\n"},
		"unseen":     {corev1.PodStatus{Phase: corev1.PodPending}, "", nil, "\nNow: scheduling: default-scheduler has not looked at it yet (\"kctl doctor\" tells whether it runs)\n(\"kctl explain-schedule pod/web\" tells what each node answers)\n"},
		"bad probe":  {running, "n", []core.Event{started, probe}, "\nNow: getting ready: Unhealthy: Readiness probe failed\n"},
		"it is well": {condition(corev1.PodReady, corev1.ConditionTrue, ""), "n", nil, ""},
	} {
		var out bytes.Buffer
		tracing := traceOptions{CLI: frame.New(frame.Streams{Out: &out}, clock.RealClock{})}
		pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: test.status}
		pod.Spec.NodeName = test.node
		pod.Spec.Containers = []core.Container{{Name: "c"}}
		if err := tracing.printWaterfall(pod, test.events, timeline.Timeline{}); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.HasSuffix(got, test.want) || strings.Contains(got, "Now:") != (test.want != "") {
			t.Errorf("%s:\n%s\nwant at its end %q", name, got, test.want)
		}
	}
}
