package podruntime

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

// Resources keeps what a pod's containers run with, by name.
type Resources interface {
	Actual(container string) (r corev1.ResourceRequirements, known bool)
	Applied(container string, r corev1.ResourceRequirements)
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
	return Resized(c.Resources, actual)
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
func (d *decision) resize(c *core.Container, running *ContainerStatus) {
	if len(d.resized(c)) > 0 {
		d.actions.Resize = append(d.actions.Resize, containerResize{ID: running.ID, Container: c})
	}
}

// resizeContainers changes the resources of running containers, and tells
// whether all of it could be done.
func (s *podSync) resizeContainers(resizes []containerResize) bool {
	var g errgroup.Group
	for _, r := range resizes {
		g.Go(func() error {
			if err := s.runtime.UpdateContainerResources(context.WithoutCancel(s.ctx), r.ID.ID, s.containerResources(s.pod, r.Container)); err != nil {
				return fmt.Errorf("resizing container %s: %w", r.Container.Name, err)
			}
			s.applied(r.Container)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		s.Events.Eventf(s.pod, corev1.EventTypeWarning, "ResizeError", "Error resizing pod: %v", err)
		s.fail(err)
		return false
	}
	return true
}

// applied notes that the container has the resources of its spec.
func (s *podSync) applied(c *core.Container) {
	if s.options.Resources != nil {
		s.options.Resources.Applied(c.Name, c.Resources)
	}
}
