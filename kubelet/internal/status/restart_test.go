package status

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// stage is a moment in the life of a pod that starts over.
type stage struct {
	name, runtime string
	waiting       map[string]runtimestate.Waiting
	phase         corev1.PodPhase
	states        string
	restarting    corev1.ConditionStatus
}

// walk generates the status of each stage from that of the one before.
func walk(t *testing.T, pod *core.Pod, stages []stage) core.PodStatus {
	t.Helper()
	last := core.PodStatus{}
	at := now
	for _, s := range stages {
		at = at.Add(time.Second)
		got := Generate(Input{Pod: pod, Previous: &last, Runtime: runtimeOf(s.runtime), Waiting: s.waiting, Ready: yes, Started: yes, Now: at})
		states := short(got.InitContainerStatuses) + "|" + short(got.ContainerStatuses)
		restarting := corev1.ConditionStatus("")
		if c := findCondition(got.Conditions, corev1.AllContainersRestarting); c != nil {
			restarting = c.Status
		}
		if got.Phase != s.phase || states != s.states || restarting != s.restarting {
			t.Fatalf("%s: %s %q restarting %q, want %s %q %q", s.name, got.Phase, states, restarting, s.phase, s.states, s.restarting)
		}
		if c := findCondition(got.Conditions, corev1.PodInitialized); c.Status != corev1.ConditionTrue {
			t.Errorf("%s: %+v", s.name, c)
		}
		if restarting == corev1.ConditionTrue {
			c := findCondition(got.Conditions, corev1.AllContainersRestarting)
			if c.Reason != "ContainerExited" || c.Message != "Container a exited with code 42, triggering pod restart" {
				t.Errorf("%s: %+v", s.name, c)
			}
		}
		last = got
	}
	return last
}

func TestAPodThatBeginsAnew(t *testing.T) {
	pod := ruled(testPod(corev1.RestartPolicyNever, "i", "a b"))
	pod.Spec.Containers[0].RestartPolicyRules[0].Action = corev1.ContainerRestartRuleActionRestartAllContainers
	const there, gone = corev1.ConditionTrue, corev1.ConditionFalse
	begin := []stage{
		{"runs", "a=running b=exit0 i=exit0", nil, corev1.PodRunning, "T0:Completed|R T0:Completed", ""},
		{"one ends", "a=exit42 b=exit0 i=exit0", nil, corev1.PodPending, "T0:Completed|T42:Error T0:Completed", there},
		{"half forgotten", "a=exit42", nil, corev1.PodPending, "W:PodInitializing|T42:Error W:PodInitializing", there},
		{"forgotten", "", nil, corev1.PodPending, "W:PodInitializing|W:PodInitializing W:PodInitializing", gone},
		{"a look later", "", nil, corev1.PodPending, "W:PodInitializing|W:PodInitializing W:PodInitializing", gone},
		{"init container", "i=running", nil, corev1.PodPending, "R|W:PodInitializing W:PodInitializing", gone},
	}
	for _, c := range walk(t, pod, begin[:4]).ContainerStatuses {
		if c.RestartCount != 1 {
			t.Errorf("%s has restarted %d times", c.Name, c.RestartCount)
		}
	}
	last := walk(t, pod, append(begin,
		stage{"half started", "a=running i=exit0", nil, corev1.PodPending, "T0:Completed|R W:PodInitializing", gone},
		stage{"runs again", "a=running b=running i=exit0", nil, corev1.PodRunning, "T0:Completed|R R", gone},
		stage{"ends", "a=exit0 b=exit0 i=exit0", nil, corev1.PodSucceeded, "T0:Completed|T0:Completed T0:Completed", gone},
	))
	if ended := last.ContainerStatuses[0].LastTerminationState.Terminated; ended == nil || ended.ExitCode != 42 {
		t.Errorf("the end that began it is %+v", ended)
	}
	walk(t, pod, append(begin, stage{"init container fails", "i=exit1", nil, corev1.PodFailed, "T1:Error|W:PodInitializing W:PodInitializing", gone}))

	held := map[string]runtimestate.Waiting{"a": {Reason: runtimestate.ReasonCrashLoopBackOff}}
	walk(t, pod, append(begin[:2:2],
		stage{"held back", "a=exit42 b=exit0 i=exit0", held, corev1.PodPending, "T0:Completed|W:CrashLoopBackOff T0:Completed", there}))
	// After a reboot, the kubelet continues from what the API has.
	walk(t, pod, append(begin[:2:2], stage{"all is lost", "", nil, corev1.PodPending, "W:PodInitializing|W:PodInitializing W:PodInitializing", gone}))
}
