package volume

import (
	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

// usedVolumes are the pod's volumes that some container mounts. No others are made, as
// upstream: a pod runs without volumes that no container uses.
func usedVolumes(pod *core.Pod) []*corev1.Volume {
	mounted := map[string]bool{}
	note := func(mounts []corev1.VolumeMount) {
		for i := range mounts {
			mounted[mounts[i].Name] = true
		}
	}
	spec := &pod.Spec
	for c := range core.Containers(spec) {
		note(c.VolumeMounts)
	}
	for i := range spec.EphemeralContainers {
		note(spec.EphemeralContainers[i].VolumeMounts)
	}
	volumes := make([]*corev1.Volume, 0, len(mounted))
	for i := range spec.Volumes {
		if v := &spec.Volumes[i]; mounted[v.Name] {
			volumes = append(volumes, v)
		}
	}
	return volumes
}
