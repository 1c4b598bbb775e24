package status

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

func TestWhoRunsAndWhatIsMounted(t *testing.T) {
	pod := testPod(corev1.RestartPolicyAlways, "", "a b")
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
		{Name: "v", MountPath: "/v"}, {Name: "w", MountPath: "/w", ReadOnly: true}, {Name: "x", MountPath: "x", ReadOnly: true},
	}
	pod.Spec.Containers[1].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v", ReadOnly: true}}
	runtime := runtimeOf("a=running")
	runtime.Containers[0].User = &corev1.LinuxContainerUser{UID: 1, GID: 2, SupplementalGroups: []int64{2, 3}}
	runtime.Containers[0].RecursiveReadOnly = []string{"/x"}
	got := Generate(Input{Pod: pod, Previous: &core.PodStatus{}, Runtime: runtime, Now: now}).ContainerStatuses
	if got[0].User == nil || got[0].User.Linux.UID != 1 || len(got[0].User.Linux.SupplementalGroups) != 2 || got[1].User != nil {
		t.Errorf("users %+v and %+v", got[0].User, got[1].User)
	}
	var mounts []string
	for _, status := range got {
		for _, m := range status.VolumeMounts {
			mounts = append(mounts, fmt.Sprintf("%s:%s:%t:%s", m.Name, m.MountPath, m.ReadOnly, ptr.Deref(m.RecursiveReadOnly, "")))
		}
	}
	if want := "[v:/v:false: w:/w:true:Disabled x:x:true:Enabled v:/v:true:Disabled]"; fmt.Sprint(mounts) != want {
		t.Errorf("mounts %v, want %s", mounts, want)
	}
}

func TestMessagesShareTheirRoom(t *testing.T) {
	pod, runtime := &core.Pod{}, runtimeOf("")
	for i := range 12 {
		name := fmt.Sprintf("c%d", i)
		c := core.Container{Name: name, Image: "i"}
		if i%2 == 0 {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		} else {
			pod.Spec.Containers = append(pod.Spec.Containers, c)
		}
		ended := runtimeOf(name + "=exit1").Containers[0]
		ended.Message = strings.Repeat("é", 1500) + " end"
		runtime.Containers = append(runtime.Containers, ended)
	}
	status := Generate(Input{Pod: pod, Previous: &core.PodStatus{}, Runtime: runtime, Ready: yes, Started: yes, Terminal: true, Now: now})
	for _, s := range append(status.InitContainerStatuses, status.ContainerStatuses...) {
		message := s.State.Terminated.Message
		if len(message) > 1024 || len(message) < 1000 || !strings.HasSuffix(message, "é end") || !utf8.ValidString(message) {
			t.Errorf("%s: %d bytes, %q", s.Name, len(message), message)
		}
	}
}

// A container that waited for a restart and won't get one counts with its last
// end; one that never started stays waiting.
func TestHowPodsEnd(t *testing.T) {
	pod := testPod(corev1.RestartPolicyOnFailure, "", "a")
	in := Input{Pod: pod, Previous: &core.PodStatus{}, Runtime: runtimeOf("a=exit3"), Ready: yes, Started: yes, Now: now}
	in.Waiting = map[string]runtimestate.Waiting{"a": {Reason: runtimestate.ReasonRunContainer}}
	waits := Generate(in)
	if a := waits.ContainerStatuses[0]; a.State.Waiting == nil || a.LastTerminationState.Terminated == nil {
		t.Errorf("while it waits: %+v", a)
	}
	in.Previous, in.Waiting, in.Terminal = &waits, nil, true
	if a := Generate(in).ContainerStatuses[0]; a.State.Terminated == nil || a.LastTerminationState.Terminated != nil {
		t.Errorf("it ended once: %+v", a)
	}

	pod = testPod(corev1.RestartPolicyNever, "i", "a")
	ended := Generate(Input{Pod: pod, Previous: &core.PodStatus{}, Runtime: runtimeOf("i=exit1"), Ready: yes, Started: yes, Terminal: true, Now: now})
	if a := ended.ContainerStatuses[0].State.Waiting; ended.Phase != corev1.PodFailed || a == nil || a.Reason != runtimestate.ReasonPodInitializing {
		t.Errorf("after an init container failed: %s, %+v", ended.Phase, ended.ContainerStatuses[0].State)
	}

	for _, c := range []struct {
		runtime *runtimestate.PodStatus
		message string
	}{{&runtimestate.PodStatus{}, "no pod sandbox exists"}, {&runtimestate.PodStatus{Sandboxes: []*runtimestate.SandboxStatus{{ID: "s"}}},
		"pod sandbox is not ready"}} {
		status := Generate(Input{Pod: pod, Previous: &core.PodStatus{}, Runtime: c.runtime, Ready: yes, Started: yes, Now: now})
		if got := findCondition(status.Conditions, corev1.PodReadyToStartContainers); got.Status != corev1.ConditionFalse || got.Reason != "PodSandboxNotReady" ||
			got.Message != c.message {
			t.Errorf("condition %+v, want %s", got, c.message)
		}
	}
}
