// Package runtimeconfig makes the CRI v1 configuration of a pod's sandbox and of its
// containers.
//
// Package podruntime calls it before it creates a sandbox or a container. The
// way through the room: sandbox.go for the pod, then container.go for each container,
// with its mounts, its security (security.go) and its resources (resources.go).
//
// It creates the files and directories on the node that a container's configuration
// refers to, and it rejects by name what this kubelet or the runtime does not support.
// It never calls the runtime.
package runtimeconfig
