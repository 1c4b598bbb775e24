package pod

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"kctl/proto/core"
)

func TestColumns(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	const (
		two     = "spec: {containers: [{name: a}, {name: b}]}\n"
		one     = "spec: {containers: [{name: a}]}\n"
		init    = "spec: {initContainers: [{name: i}, {name: j}], containers: [{name: a}]}\n"
		sidecar = "spec: {initContainers: [{name: i, restartPolicy: Always}, {name: j}], containers: [{name: a}]}\n"
	)
	for _, c := range []struct {
		name, pod, ready, status, restarts string
	}{
		{"just created", one + "status: {phase: Pending}", "0/1", "Pending", "0"},
		{"gated", one + "status: {phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: SchedulingGated}]}", "0/1", "SchedulingGated", "0"},
		{"creating", one + "status: {phase: Pending, containerStatuses: [{name: a, state: {waiting: {reason: ContainerCreating}}}]}", "0/1", "ContainerCreating",
			"0"},
		{"running",
			two +
				"status: {phase: Running, containerStatuses: [{name: a, ready: true, state: {running: {}}}, {name: b, ready: true, " +
				"restartCount: 3, state: {running: {}}}]}", "2/2", "Running", "3"},
		{"restarted",
			one +
				"status: {phase: Running, containerStatuses: [{name: a, ready: true, restartCount: 2, state: {running: {}}, lastState: {terminated: {finishedAt: " +
				"'2030-01-01T11:55:00Z'}}}]}", "1/1", "Running", "2 (5m ago)"},
		{"crashing",
			one +
				"status: {phase: Running, containerStatuses: [{name: a, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: " +
				"{finishedAt: '2030-01-01T11:59:50Z'}}}]}", "0/1", "CrashLoopBackOff", "4 (10s ago)"},
		{"completed", one + "status: {phase: Succeeded, containerStatuses: [{name: a, state: {terminated: {reason: Completed}}}]}", "0/1", "Completed", "0"},
		{"failed", one + "status: {phase: Failed, containerStatuses: [{name: a, state: {terminated: {exitCode: 3}}}]}", "0/1", "ExitCode:3", "0"},
		{"killed", one + "status: {phase: Failed, containerStatuses: [{name: a, state: {terminated: {exitCode: 137, signal: 9}}}]}", "0/1", "Signal:9", "0"},
		{"one completed, one runs, ready", two +
			"status: {phase: Running, conditions: [{type: Ready, status: 'True'}], containerStatuses: [{name: a, state: {terminated: {reason: Completed}}}, {name: b, " +
			"ready: true, state: {running: {}}}]}", "1/2", "Running", "0"},
		{"one completed, one runs",
			two + "status: {phase: Running, containerStatuses: [{name: a, state: {terminated: {reason: Completed}}}, {name: b, ready: true, state: {running: {}}}]}",
			"1/2", "NotReady", "0"},
		{"first container's word counts", two +
			"status: {phase: Running, containerStatuses: [{name: a, state: {waiting: {reason: ImagePullBackOff}}}, {name: b, state: {waiting: " +
			"{reason: CrashLoopBackOff}}}]}", "0/2", "ImagePullBackOff", "0"},
		{"evicted", one + "status: {phase: Failed, reason: Evicted}", "0/1", "Evicted", "0"},
		{"initializing",
			init +
				"status: {phase: Pending, initContainerStatuses: [{name: i, state: {terminated: {reason: Completed}}}, {name: j, state: {running: {}}}], " +
				"containerStatuses: [{name: a, state: {waiting: {reason: PodInitializing}}}]}", "0/1", "Init:1/2", "0"},
		{"initialized",
			init +
				"status: {phase: Pending, initContainerStatuses: [{name: i, state: {terminated: {reason: Completed}}}, {name: j, state: {terminated: {reason: " +
				"Completed}}}], containerStatuses: [{name: a, state: {waiting: {reason: PodInitializing}}}]}", "0/1", "PodInitializing", "0"},
		{"init fails", init + "status: {phase: Pending, initContainerStatuses: [{name: i, restartCount: 1, state: {terminated: {exitCode: 2}}}]}", "0/1",
			"Init:ExitCode:2", "1"},
		{"init errors", init + "status: {phase: Pending, initContainerStatuses: [{name: i, state: {terminated: {exitCode: 2, reason: Error}}}]}", "0/1", "Init:Error",
			"0"},
		{"init crashes", init + "status: {phase: Pending, initContainerStatuses: [{name: i, restartCount: 6, state: {waiting: {reason: CrashLoopBackOff}}}]}", "0/1",
			"Init:CrashLoopBackOff", "6"},
		{"init restarts are forgotten", init +
			"status: {phase: Running, initContainerStatuses: [{name: i, restartCount: 6, state: {terminated: {reason: Completed}}}, {name: j, state: {terminated: " +
			"{reason: Completed}}}], containerStatuses: [{name: a, restartCount: 1, ready: true, state: {running: {}}}]}", "1/1", "Running", "1"},
		{"sidecar counts",
			sidecar +
				"status: {phase: Running, initContainerStatuses: [{name: i, restartCount: 2, started: true, ready: true, state: {running: {}}}, {name: j, state: " +
				"{terminated: {reason: Completed}}}], containerStatuses: [{name: a, ready: true, state: {running: {}}}]}", "2/2", "Running", "2"},
		{"ending", "metadata: {deletionTimestamp: '2030-01-01T11:59:00Z'}\n" + one + "status: {phase: Running}", "0/1", "Terminating", "0"},
		{"ended, to be deleted", "metadata: {deletionTimestamp: '2030-01-01T11:59:00Z'}\n" + one + "status: {phase: Succeeded}", "0/1", "Succeeded", "0"},
		{"lost", "metadata: {deletionTimestamp: '2030-01-01T11:59:00Z'}\n" + one + "status: {phase: Running, reason: NodeLost}", "0/1", "Unknown", "0"},
	} {
		pod := new(core.Pod)
		if err := yaml.UnmarshalStrict([]byte(c.pod), pod); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got := fmt.Sprint(row(pod, now)[1:4])
		if want := fmt.Sprintf("[%s %s %s]", c.ready, c.status, c.restarts); got != want {
			t.Errorf("%s: %s, want %s", c.name, got, want)
		}
	}
}

func TestWideColumns(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	pod := minimal(func(p *core.Pod) {
		p.CreationTimestamp = metav1.NewTime(now.Add(-90 * time.Second))
		p.Spec.NodeName, p.Status.PodIP = "n1", "10.0.0.7"
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "x"}, {ConditionType: "y"}}
		p.Status.Conditions = []corev1.PodCondition{{Type: "y", Status: corev1.ConditionTrue}}
	})
	cells := row(pod, now)
	if len(cells) != len(columns()) {
		t.Fatalf("%d cells in %d columns", len(cells), len(columns()))
	}
	if got, want := fmt.Sprint(cells[4:]), "[90s 10.0.0.7 n1 <none> 1/2]"; got != want {
		t.Errorf("wide columns are %s, want %s", got, want)
	}
}
