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
