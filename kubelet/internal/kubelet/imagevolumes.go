package kubelet

import (
	"kctl/kubelet/internal/podruntime"
	"kctl/proto/core"
)

// checkImageVolumes tells whether the container runtime is too old for the
// pod's volumes.
func (k *Kubelet) checkImageVolumes(pod *core.Pod) error {
	return podruntime.CheckImageVolumes(pod, k.health.RuntimeVersion())
}

// imageVolumes are the images that pods of the node have as volumes.
func (k *Kubelet) imageVolumes() []string {
	var references []string
	for _, pod := range k.pods.Pods() {
		for i := range pod.Spec.Volumes {
			if image := pod.Spec.Volumes[i].Image; image != nil && k.active(pod) {
				references = append(references, image.Reference)
			}
		}
	}
	return references
}
