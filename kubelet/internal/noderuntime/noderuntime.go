package noderuntime

import (
	"cmp"
	"context"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/shutdown"
)

const (
	// maxImageNames is the number of names that the node reports of an image.
	maxImageNames = 5
	// maxImageName is longer than any reference. The API would refuse the node's status with
	// names of megabytes.
	maxImageName = 1024
)

// Health is what the runtime says of itself.
type Health interface {
	RuntimeVersion() string
	Reported() *runtimeapi.StatusResponse
	RuntimeError() error
	NetworkError() error
}

// CRI is what is asked of the runtime.
type CRI interface {
	ListImages(ctx context.Context) ([]*runtimeapi.Image, error)
	UpdateRuntimeConfig(ctx context.Context, podCIDR string) error
}

// Runtime implements node.Runtime.
type Runtime struct {
	Health Health
	CRI    CRI
	// ShuttingDown says that the machine is shut down, and Relisting why pods' lifecycle events are
	// not known.
	ShuttingDown func() bool
	Relisting    func() error
	// MostImages is how many images are reported; negative for all.
	MostImages int
}

// RuntimeVersion is its name and version.
func (r Runtime) RuntimeVersion() string { return r.Health.RuntimeVersion() }

// Features returns the handlers' features from the runtime's status.
func (r Runtime) Features() node.RuntimeFeatures {
	status := r.Health.Reported()
	var features node.RuntimeFeatures
	for _, handler := range status.GetRuntimeHandlers() {
		one := corev1.NodeRuntimeHandler{Name: handler.GetName()}
		if f := handler.GetFeatures(); f != nil {
			one.Features = &corev1.NodeRuntimeHandlerFeatures{RecursiveReadOnlyMounts: &f.RecursiveReadOnlyMounts, UserNamespaces: &f.UserNamespaces}
		}
		features.Handlers = append(features.Handlers, one)
	}
	slices.SortFunc(features.Handlers, func(a, b corev1.NodeRuntimeHandler) int { return cmp.Compare(a.Name, b.Name) })
	if f := status.GetFeatures(); f != nil {
		features.Node = &corev1.NodeFeatures{SupplementalGroupsPolicy: &f.SupplementalGroupsPolicy}
	}
	return features
}

// NotReady returns why the node is not ready.
func (r Runtime) NotReady() []string {
	var reasons []string
	if r.ShuttingDown() {
		reasons = append(reasons, shutdown.NotReady)
	}
	for _, err := range []error{r.Health.RuntimeError(), r.Health.NetworkError(), r.Relisting()} {
		if err != nil {
			reasons = append(reasons, err.Error())
		}
	}
	return reasons
}

// UpdatePodCIDRs tells the runtime which addresses pods have.
func (r Runtime) UpdatePodCIDRs(ctx context.Context, cidrs string) error {
	return r.CRI.UpdateRuntimeConfig(ctx, cidrs)
}

// Images returns the largest images, and what they are called.
func (r Runtime) Images(ctx context.Context) ([]corev1.ContainerImage, error) {
	images, err := r.CRI.ListImages(ctx)
	if err != nil {
		return nil, err
	}
	listed := make([]corev1.ContainerImage, 0, len(images))
	for _, image := range images {
		names := slices.DeleteFunc(slices.Concat(image.GetRepoDigests(), image.GetRepoTags()),
			func(name string) bool { return len(name) > maxImageName })
		listed = append(listed, corev1.ContainerImage{
			Names: names[:min(len(names), maxImageNames)], SizeBytes: int64(min(image.GetSize(), math.MaxInt64)),
		})
	}
	slices.SortFunc(listed, func(a, b corev1.ContainerImage) int {
		return cmp.Or(cmp.Compare(b.SizeBytes, a.SizeBytes), slices.Compare(a.Names, b.Names))
	})
	if r.MostImages >= 0 {
		listed = listed[:min(len(listed), r.MostImages)]
	}
	return listed, nil
}
