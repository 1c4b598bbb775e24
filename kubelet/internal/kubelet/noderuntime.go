package kubelet

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/shutdown"
)

// maxImageNames is how many names of an image the node tells.
const maxImageNames = 5

// nodeRuntime is what the node reports about the runtime.
type nodeRuntime struct{ k *Kubelet }

func (n nodeRuntime) RuntimeVersion() string { return n.k.health.RuntimeVersion() }

func (n nodeRuntime) Features() node.RuntimeFeatures { return n.k.health.Features() }

func (n nodeRuntime) NotReady() []string {
	var reasons []string
	if n.k.shutdown.ShuttingDown() {
		reasons = append(reasons, shutdown.NotReady)
	}
	errs := []error{n.k.health.RuntimeError(), n.k.health.NetworkError()}
	if n.k.pleg != nil {
		errs = append(errs, n.k.pleg.Healthy())
	}
	for _, err := range errs {
		if err != nil {
			reasons = append(reasons, err.Error())
		}
	}
	return reasons
}

func (n nodeRuntime) Images(ctx context.Context) ([]corev1.ContainerImage, error) {
	images, err := n.k.cri.ListImages(ctx)
	if err != nil {
		return nil, err
	}
	listed := make([]corev1.ContainerImage, 0, len(images))
	for _, image := range images {
		names := slices.Concat(image.GetRepoDigests(), image.GetRepoTags())
		listed = append(listed, corev1.ContainerImage{Names: names[:min(len(names), maxImageNames)], SizeBytes: int64(image.GetSize())})
	}
	slices.SortFunc(listed, func(a, b corev1.ContainerImage) int {
		if a.SizeBytes != b.SizeBytes {
			return int(b.SizeBytes - a.SizeBytes)
		}
		return slices.Compare(a.Names, b.Names)
	})
	if most := int(n.k.config.MaxImages); most >= 0 {
		listed = listed[:min(len(listed), most)]
	}
	return listed, nil
}
