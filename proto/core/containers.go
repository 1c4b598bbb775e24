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
	return func(yield func(*Container) bool) {
		for _, list := range [][]Container{spec.InitContainers, spec.Containers} {
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
