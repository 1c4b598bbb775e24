package podactions

import (
	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/fieldpath"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// resizable are the resources that can be changed while a container runs.
var resizable = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// Resized are the resources of which a container is to get a different amount
// from what it runs with.
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
	actual, known := d.facts.Actual[c.Name]
	if !known {
		return nil
	}
	wanted := c.Resources
	wanted.Limits = fieldpath.Limits(d.pod, wanted.Limits)
	return Resized(wanted, actual)
}

// resizeRestarts tells whether the container wants a restart for the change of
// its resources that is due.
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

// resize changes a running container's resources in place if they are not what
// they should be.
func (d *decision) resize(c *core.Container, running *runtimestate.ContainerStatus) {
	if len(d.resized(c)) > 0 {
		d.actions.Resize = append(d.actions.Resize, Resize{ID: running.ID, Container: c})
	}
}
