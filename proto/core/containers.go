package core

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// IsSidecar tells whether an init container keeps running beside the pod's
// containers (KEP-753).
func IsSidecar(c *Container) bool {
	return ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
}

// Containers are a pod's init containers and then its others, without the ephemeral ones. They
// are those of spec itself, not copies.
func Containers(spec *PodSpec) iter.Seq[*Container] {
	return each(spec.InitContainers, spec.Containers)
}

// FindContainer is the pod's container of that name, of whatever kind, or nil. It is that of the pod
// itself, unless it is an ephemeral one: these are copied.
func FindContainer(pod *Pod, name string) *Container {
	for c := range Containers(&pod.Spec) {
		if c.Name == name {
			return c
		}
	}
	for _, e := range pod.Spec.EphemeralContainers {
		if e.Name == name {
			c := Container(e.EphemeralContainerCommon)
			return &c
		}
	}
	return nil
}

// ContainerStatuses are those of Containers, as far as they are known.
func ContainerStatuses(status *PodStatus) iter.Seq[*ContainerStatus] {
	return each(status.InitContainerStatuses, status.ContainerStatuses)
}

// AllContainerStatuses has those of the ephemeral containers, too.
func AllContainerStatuses(status *PodStatus) iter.Seq[*ContainerStatus] {
	return each(status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses)
}

func each[T any](lists ...[]T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for _, list := range lists {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// LastingContainers are those of Containers that run for as long as the pod does: its sidecars
// and those that are no init containers.
func LastingContainers(spec *PodSpec) iter.Seq[*Container] {
	return func(yield func(*Container) bool) {
		for i := range spec.InitContainers {
			if c := &spec.InitContainers[i]; IsSidecar(c) && !yield(c) {
				return
			}
		}
		for i := range spec.Containers {
			if !yield(&spec.Containers[i]) {
				return
			}
		}
	}
}
