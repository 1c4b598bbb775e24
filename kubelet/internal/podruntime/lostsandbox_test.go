package podruntime

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

func TestLostSandboxIsMadeAnew(t *testing.T) {
	b := newBed(t)
	pod := newPod("lost", shell("main", forever))
	first := b.sync(t, pod, SyncOptions{})
	if first.Err != nil {
		t.Fatal(first.Err)
	}
	if err := b.containerd.Client().StopPodSandbox(t.Context(), first.Status.Sandboxes[0].ID); err != nil {
		t.Fatal(err)
	}
	second := b.sync(t, pod, SyncOptions{})
	if second.Err != nil || second.Status.ReadySandbox() == nil || second.Status.Sandboxes[0].Attempt != 1 {
		t.Fatalf("%s %v", show(second.Status), second.Err)
	}
	if main := second.Status.Container("main"); main.State != runtimestate.StateRunning || main.RestartCount != 1 {
		t.Errorf("main is %+v", main)
	}
	if told := slices.DeleteFunc(slices.Clone(b.events.lines), func(line string) bool { return !strings.HasPrefix(line, "SandboxChanged: ") }); len(told) != 1 {
		t.Errorf("told %q, want once that the sandbox changed", told)
	}
}

// In a new sandbox all init containers run again before the others, whatever ran in the old one.
func TestInitContainersRunFirstInANewSandbox(t *testing.T) {
	b := newBed(t)
	pod := newPod("lost", shell("main", forever))
	pod.Spec.InitContainers = []core.Container{shell("init", "sleep 1")}
	b.sync(t, pod, SyncOptions{})
	b.until(t, pod, "initialized", exited("init", 0))
	first := b.sync(t, pod, SyncOptions{})
	if first.Err != nil || len(first.Status.Running()) != 1 {
		t.Fatalf("%s %v", show(first.Status), first.Err)
	}
	if err := b.containerd.Client().StopPodSandbox(t.Context(), first.Status.Sandboxes[0].ID); err != nil {
		t.Fatal(err)
	}
	second := b.sync(t, pod, SyncOptions{})
	if main := second.Status.Container("main"); second.Err != nil || second.Status.Container("init") == nil || main.RestartCount != 0 ||
		main.State != runtimestate.StateExited {
		t.Fatalf("the init container runs again, and %s %v", show(second.Status), second.Err)
	}
	b.until(t, pod, "initialized again", exited("init", 1))
	if third := b.sync(t, pod, SyncOptions{}); third.Status.Container("main").RestartCount != 1 {
		t.Errorf("then %s", show(third.Status))
	}
}

// How a sidecar ended with its sandbox is told before it is removed for its next run.
func TestEndsOfSidecarsAreToldBeforeANewSandbox(t *testing.T) {
	b := newBed(t)
	pod := newPod("lost", shell("main", forever))
	pod.Spec.InitContainers = []core.Container{shell("proxy", "trap 'exit 9' TERM; "+forever)}
	pod.Spec.InitContainers[0].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	b.sync(t, pod, SyncOptions{})
	first := b.sync(t, pod, SyncOptions{})
	if first.Err != nil || len(first.Status.Running()) != 2 {
		t.Fatalf("%s %v", show(first.Status), first.Err)
	}
	if err := b.containerd.Client().StopPodSandbox(t.Context(), first.Status.Sandboxes[0].ID); err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	second := b.sync(t, pod, SyncOptions{Changed: func(status *runtimestate.PodStatus) {
		if proxy := status.Container("proxy"); proxy != nil && proxy.State == runtimestate.StateExited {
			told[proxy.ID.ID] = true
		}
	}})
	if old := first.Status.Container("proxy").ID.ID; second.Err != nil || !told[old] {
		t.Errorf("told of the ends of %v, not of %s: %s %v", told, old, show(second.Status), second.Err)
	}
}

// A container that is ended because its sandbox was lost is told to be one that starts again: a job that
// handles SIGTERM well is not done for that.
func TestWhatANewSandboxInterruptsIsNotDone(t *testing.T) {
	b := newBed(t)
	pod := newPod("interrupted", shell("main", "trap 'exit 0' TERM; "+forever), shell("done", "exit 0"))
	pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	b.sync(t, pod, SyncOptions{})
	b.until(t, pod, "half done", exited("done", 0))
	told := 0
	result := b.SyncPod(t.Context(), pod, withoutSandbox(b.status(t, pod)), SyncOptions{Changed: func(status *runtimestate.PodStatus) {
		main, done := status.Container("main"), status.Container("done")
		if main.State == runtimestate.StateExited {
			told++
			if main.ExitCode != 0 || !main.Again {
				t.Errorf("told of its end: %+v", main)
			}
		}
		if done.Again {
			t.Errorf("what is done starts again: %+v", done)
		}
	}})
	if main := result.Status.Container("main"); result.Err != nil || told == 0 || main.State != runtimestate.StateRunning || main.RestartCount != 1 {
		t.Errorf("told %d times: %s %v", told, show(result.Status), result.Err)
	}
	pod = pod.DeepCopy()
	pod.Spec.Containers[0].Image, pod.Spec.Containers[0].ImagePullPolicy = "localhost/none", corev1.PullNever
	result = b.sync(t, pod, SyncOptions{})
	if main := result.Status.Container("main"); main.State != runtimestate.StateExited || !main.Again {
		t.Errorf("after its image has changed: %s", show(result.Status))
	}
}
