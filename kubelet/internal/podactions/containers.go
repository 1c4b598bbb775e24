package podactions

import "kctl/proto/core"

// FindContainer is the pod's container of that name, of whatever kind, or nil.
func FindContainer(pod *core.Pod, name string) *core.Container {
	for _, specs := range [][]core.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range specs {
			if specs[i].Name == name {
				return &specs[i]
			}
		}
	}
	for _, e := range pod.Spec.EphemeralContainers {
		if e.Name == name {
			c := core.Container(e.EphemeralContainerCommon)
			return &c
		}
	}
	return nil
}
