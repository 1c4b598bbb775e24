// Package hook runs the lifecycle hooks of containers: postStart and preStop
// (Kubernetes docs, "Container Lifecycle Hooks").
//
// Package podruntime calls it, with a context that ends when the hook has had its
// time. What follows from a failed hook, and who is told, is its caller's business.
package hook
