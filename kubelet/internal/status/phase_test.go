package status

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// A sidecar that has not started makes its pod Pending until a regular container was made in the
// sandbox, and again when that sandbox has ended.
func TestASidecarThatHasNotStarted(t *testing.T) {
	for name, c := range map[string]struct {
		runtime string
		ended   bool
		want    corev1.PodPhase
	}{
		"before the others":         {"i=running", false, corev1.PodPending},
		"beside the others":         {"a=running i=running", false, corev1.PodRunning},
		"in a sandbox that ended":   {"a=running i=running", true, corev1.PodPending},
		"in a new sandbox":          {"i=running old a=exit0", false, corev1.PodPending},
		"ended as its sandbox did":  {"a=exit0 i=exit0", true, corev1.PodRunning},
		"known to nobody any more":  {"old a=exit0", true, corev1.PodPending},
		"beside one that has ended": {"a=exit1 i=running", false, corev1.PodRunning},
	} {
		pod := testPod(corev1.RestartPolicyAlways, "i+", "a")
		pod.Spec.InitContainers[0].StartupProbe = &corev1.Probe{}
		in := Input{Pod: pod, Previous: &core.PodStatus{}, Runtime: runtimeOf(c.runtime), Ready: yes, Now: now}
		in.Started = func(container string, _ runtimestate.ContainerID) bool { return container != "i" }
		in.Runtime.Sandboxes[0].Ready = !c.ended
		if got := Generate(in); got.Phase != c.want {
			t.Errorf("%s: %s, want %s", name, got.Phase, c.want)
		}
	}
}

// What the kubelet has ended in order to start it again is not done, whatever its exit code.
func TestWhatIsInterruptedIsNotDone(t *testing.T) {
	in := Input{Pod: testPod(corev1.RestartPolicyOnFailure, "", "a b"), Previous: &core.PodStatus{}, Ready: yes, Started: yes, Now: now}
	for name, c := range map[string]struct {
		runtime         string
		again, terminal bool
		phase           corev1.PodPhase
		states          string
	}{
		"ended by themselves":    {"a=exit0 b=exit0", false, false, corev1.PodSucceeded, "T0:Completed T0:Completed"},
		"about to start again":   {"a=exit0 b=exit0", true, false, corev1.PodRunning, "R T0:Completed"},
		"restarts in any case":   {"a=exit3 b=exit0", true, false, corev1.PodRunning, "T3:Error T0:Completed"},
		"the pod ends meanwhile": {"a=exit0 b=exit0", true, true, corev1.PodSucceeded, "T0:Completed T0:Completed"},
		"started again":          {"a=running a=exit0 b=exit0", false, false, corev1.PodRunning, "R T0:Completed"},
	} {
		in.Runtime, in.Terminal = runtimeOf(c.runtime), c.terminal
		in.Runtime.Container("a").Again = c.again
		got := Generate(in)
		if a := got.ContainerStatuses[0]; got.Phase != c.phase || short(got.ContainerStatuses) != c.states || c.again && a.Ready {
			t.Errorf("%s: %s, %s, ready: %t", name, got.Phase, short(got.ContainerStatuses), a.Ready)
		}
	}
}

// An init container that a new sandbox interrupts is not done, and the pod is not initialized: it runs
// again whatever its exit code, which the API would take for its last.
func TestInitContainersThatAreInterruptedAreNotDone(t *testing.T) {
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyOnFailure, corev1.RestartPolicyAlways} {
		in := Input{Pod: testPod(policy, "i j", "a"), Previous: &core.PodStatus{}, Runtime: runtimeOf("i=exit0 j=exit0"), Ready: yes, Started: yes, Now: now}
		in.Runtime.Container("j").Again = true
		got := Generate(in)
		if is := short(got.InitContainerStatuses); is != "T0:Completed R" || got.InitContainerStatuses[1].Ready ||
			findCondition(got.Conditions, corev1.PodInitialized).Status != corev1.ConditionFalse {
			t.Errorf("%s: %s, %+v", policy, is, got.Conditions)
		}
	}
}
