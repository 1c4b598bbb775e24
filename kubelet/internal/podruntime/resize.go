package podruntime

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/fieldpath"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// Resources keeps what a pod's containers run with, by name. Limits that a container
// does not have itself are the pod's in Actual, and not in Applied.
type Resources interface {
	Actual(container string) (r corev1.ResourceRequirements, known bool)
	Applied(container string, r corev1.ResourceRequirements)
	// PodMemoryInUse says that the pod's memory limit, if it is to be lower, leaves no
	// room for what the pod uses.
	PodMemoryInUse() error
}

// resizable are the resources that can change while a container runs.
var resizable = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// Resized are the resources of which a container is to have another amount
// than it runs with.
func Resized(wanted, actual corev1.ResourceRequirements) []corev1.ResourceName {
	var names []corev1.ResourceName
	for _, name := range resizable {
		request, before := wanted.Requests[name], actual.Requests[name]
		limit, bound := wanted.Limits[name], actual.Limits[name]
		if request.Cmp(before) != 0 || limit.Cmp(bound) != 0 {
			names = append(names, name)
		}
	}
	return names
}

func (d *decision) resized(c *core.Container) []corev1.ResourceName {
	actual, known := d.facts.actual[c.Name]
	if !known {
		return nil
	}
	wanted := c.Resources
	wanted.Limits = fieldpath.Limits(d.pod, wanted.Limits)
	return Resized(wanted, actual)
}

// resizeRestarts tells whether the container asks to be restarted for a change
// of its resources that is due.
func (d *decision) resizeRestarts(c *core.Container) bool {
	for _, name := range d.resized(c) {
		for _, policy := range c.ResizePolicy {
			if policy.ResourceName == name && policy.RestartPolicy == corev1.RestartContainer {
				return true
			}
		}
	}
	return false
}

// resize changes a running container in place where it has to have other
// resources than it has.
func (d *decision) resize(c *core.Container, running *runtimestate.ContainerStatus) {
	if len(d.resized(c)) > 0 {
		d.actions.Resize = append(d.actions.Resize, containerResize{ID: running.ID, Container: c})
	}
}

// ResizeError is why running containers, or their pod, could not be resized.
type ResizeError struct{ Err error }

func (e *ResizeError) Error() string { return e.Err.Error() }
func (e *ResizeError) Unwrap() error { return e.Err }

// resizeContainers changes the resources of running containers, and tells
// whether all of it could be done.
func (s *podSync) resizeContainers(resizes []containerResize) bool {
	if len(resizes) == 0 {
		return true
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

// memoryInUse names every limit that is to be lower than what is used by now. All is
// left as it is then: the kernel would end containers for that, or refuse (KEP-1287,
// "Memory Limit Decreases").
func (s *podSync) memoryInUse(resizes []containerResize) error {
	var inUse []error
	if s.options.Resources != nil {
		inUse = append(inUse, s.options.Resources.PodMemoryInUse())
	}
	for _, r := range resizes {
		limit := s.containerResources(s.pod, r.Container).GetMemoryLimitInBytes()
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

func (s *podSync) resizeContainer(r containerResize) error {
	wanted := s.containerResources(s.pod, r.Container)
	if err := s.runtime.UpdateContainerResources(context.WithoutCancel(s.ctx), r.ID.ID, wanted); err != nil {
		return fmt.Errorf("resizing container %s: %w", r.Container.Name, err)
	}
	return nil
}

// lessMemory says that the limit, in bytes, is lower than what the container has.
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
