package volume

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A volume that no container mounts is not set up, even if its source is
// missing; an ephemeral container may mount it later.
func TestOnlyWhatIsMountedIsMade(t *testing.T) {
	store := newStore()
	m := managerIn(t, t.TempDir(), store)
	pod := podWith(emptyDirVolume("data", ""))
	missing := configMapVolume("not-there", false)
	pod.Spec.Volumes = append(pod.Spec.Volumes, missing)
	mustMount(t, m, pod)
	if desired, actual := m.Count(); len(desired) != 1 || len(actual) != 1 {
		t.Errorf("desired %v, actual %v", desired, actual)
	}
	pod = pod.DeepCopy()
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: "debugger", VolumeMounts: []corev1.VolumeMount{{Name: missing.Name, MountPath: "/config"}},
	}}}
	if err := m.Mount(t.Context(), pod); err == nil {
		t.Error("the missing path was created")
	}
	pod.Spec.EphemeralContainers[0].VolumeMounts[0].Name = "data"
	mustMount(t, m, pod)
}
