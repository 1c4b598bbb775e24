package podruntime

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/podactions"
	"kctl/proto/core"
)

// Resources records what a pod's containers run with, by name. In Actual, but not in
// Applied, limits that a container does not have itself are the pod's.
type Resources interface {
	Actual(container string) (r corev1.ResourceRequirements, known bool)
	Applied(container string, r corev1.ResourceRequirements)
	// PodMemoryInUse says that the pod's memory limit, if it is lowered, would be
	// below what the pod uses.
	PodMemoryInUse() error
}

// ResizeError is why running containers, or their pod, could not be resized.
type ResizeError struct{ Err error }

func (e *ResizeError) Error() string { return e.Err.Error() }
func (e *ResizeError) Unwrap() error { return e.Err }

// resizeContainers changes the resources of running containers, and tells
// whether all of it could be done.
func (s *podSync) resizeContainers(resizes []podactions.Resize) (done bool) {
	if len(resizes) == 0 {
		return true
	}
	if s.Resized != nil {
		began := s.Clock.Now()
		defer func() { s.Resized(s.Clock.Since(began), done) }()
	}
	if err := s.memoryInUse(resizes); err != nil {
		s.fail(&ResizeError{err})
		return false
	}
	var g errgroup.Group
	for _, r := range resizes {
		g.Go(func() error {
			if err := s.resizeContainer(r); err != nil {
				return err
			}
			s.applied(r.Container)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		s.fail(&ResizeError{err})
		return false
	}
	return true
}

// memoryInUse names every new limit that is below the current usage. Nothing is
// changed then: the kernel would kill containers for that, or refuse (KEP-1287,
// "Memory Limit Decreases").
func (s *podSync) memoryInUse(resizes []podactions.Resize) error {
	var inUse []error
	if s.options.Resources != nil {
		inUse = append(inUse, s.options.Resources.PodMemoryInUse())
	}
	for _, r := range resizes {
		limit := s.Configs.Resources(s.pod, r.Container).GetMemoryLimitInBytes()
		if !s.lessMemory(r.Container.Name, limit) {
			continue
		}
		stats, err := s.runtime.ContainerStats(s.ctx, r.ID.ID)
		if err != nil {
			return fmt.Errorf("asking how much memory container %s uses: %w", r.Container.Name, err)
		}
		used := int64(stats.GetMemory().GetWorkingSetBytes().GetValue())
		inUse = append(inUse, cgroup.MemoryInUse(fmt.Sprintf("container %q", r.Container.Name), limit, used))
	}
	return cgroup.CannotDecrease(inUse...)
}

func (s *podSync) resizeContainer(r podactions.Resize) error {
	wanted := s.Configs.Resources(s.pod, r.Container)
	if err := s.runtime.UpdateContainerResources(context.WithoutCancel(s.ctx), r.ID.ID, wanted); err != nil {
		return fmt.Errorf("resizing container %s: %w", r.Container.Name, err)
	}
	return nil
}

// lessMemory says that the limit, in bytes, is lower than the container's current one.
func (s *podSync) lessMemory(container string, limit int64) bool {
	if s.options.Resources == nil || limit == 0 {
		return false
	}
	actual, known := s.options.Resources.Actual(container)
	before := actual.Limits.Memory().Value()
	return known && (before == 0 || limit < before)
}

// applied notes that the container has the resources of its spec.
func (s *podSync) applied(c *core.Container) {
	if s.options.Resources != nil {
		s.options.Resources.Applied(c.Name, c.Resources)
	}
}
