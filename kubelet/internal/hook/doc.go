// Package hook runs the lifecycle hooks of containers: postStart and preStop
// (Kubernetes docs, "Container Lifecycle Hooks").
//
// Package podruntime calls it, with a context that ends after the time that the hook
// may take. The caller handles a failed hook, and writes the event about it.
package hook
