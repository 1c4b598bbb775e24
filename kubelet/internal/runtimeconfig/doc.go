// Package runtimeconfig says what the container runtime is told of a pod: the
// configuration of its sandbox and of its containers, in the terms of CRI v1.
//
// Package podruntime asks it before each call that makes a sandbox or a container. The
// way through the room: sandbox.go for the pod, then container.go for each container,
// with its mounts, its security (security.go) and its resources (resources.go).
//
// It makes the files and directories on the node that a container's configuration
// names, and it refuses by name what this kubelet or the runtime can't do. It never
// calls the runtime.
package runtimeconfig
