package podactions

import "kctl/proto/core"

// FindContainer is the pod's container of that name, of whatever kind, or nil.
func FindContainer(pod *core.Pod, name string) *core.Container {
	for c := range core.Containers(&pod.Spec) {
		if c.Name == name {
			return c
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
