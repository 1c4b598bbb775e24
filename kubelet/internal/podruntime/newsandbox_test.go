package podruntime

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// withoutSandbox is the pod's status as it is when its sandbox has died alone.
func withoutSandbox(status *runtimestate.PodStatus) *runtimestate.PodStatus {
	lost := status.Clone()
	box := *lost.Sandboxes[0]
	box.Ready, lost.Sandboxes[0], lost.IPs = false, &box, nil
	return lost
}

// endsWell handles SIGTERM as a job does that may be interrupted.
const endsWell = "trap 'exit 0' TERM; " + ready + forever

// An init container that the new sandbox interrupts runs again, also one behind others and whatever its
// exit code: it is told to be one that starts again.
func TestInitContainersThatANewSandboxInterrupts(t *testing.T) {
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyOnFailure, corev1.RestartPolicyAlways} {
		b := newBed(t)
		pod := newPod("init", shell("main", forever))
		pod.Spec.RestartPolicy = policy
		pod.Spec.InitContainers = []core.Container{shell("first", "exit 0"), shell("second", endsWell)}
		b.sync(t, pod, SyncOptions{})
		b.until(t, pod, "begun", exited("first", 0))
		b.sync(t, pod, SyncOptions{})
		b.until(t, pod, "ready", func(*runtimestate.PodStatus) bool { return strings.Contains(b.log(t, pod, "second", 0), "ready\n") })
		told := 0
		result := b.SyncPod(t.Context(), pod, withoutSandbox(b.status(t, pod)), SyncOptions{Changed: func(status *runtimestate.PodStatus) {
			if second := status.Container("second"); second != nil && second.State == runtimestate.StateExited {
				told++
				if second.ExitCode != 0 || !second.Again {
					t.Errorf("%s: told of its end: %+v", policy, second)
				}
			}
		}})
		if first := result.Status.Container("first"); result.Err != nil || told == 0 || first == nil || first.RestartCount != 1 ||
			result.Status.Container("second") != nil {
			t.Errorf("%s: told %d times: %s %v", policy, told, show(result.Status), result.Err)
		}
	}
}

// A pod whose containers have ended for good when they were ended for a new sandbox gets none: its init
// containers would run once more, in a pod that has succeeded.
func TestWhatIsDoneBeforeANewSandboxGetsNone(t *testing.T) {
	b := newBed(t)
	pod := newPod("done", shell("main", endsWell))
	pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	pod.Spec.InitContainers = []core.Container{shell("init", "exit 0")}
	b.sync(t, pod, SyncOptions{})
	b.until(t, pod, "initialized", exited("init", 0))
	b.sync(t, pod, SyncOptions{})
	b.untilReady(t, pod)
	result := b.SyncPod(t.Context(), pod, withoutSandbox(b.status(t, pod)), SyncOptions{})
	main, init := result.Status.Container("main"), result.Status.Container("init")
	if result.Err != nil || len(result.Status.Sandboxes) != 1 || !main.Succeeded() || main.Again || init == nil || init.RestartCount != 0 {
		t.Errorf("%s %v", show(result.Status), result.Err)
	}
	if told := slices.IndexFunc(b.events.lines, func(line string) bool { return strings.HasPrefix(line, "SandboxChanged: ") }); told >= 0 {
		t.Errorf("told %q, and no sandbox was made", b.events.lines[told])
	}
}
