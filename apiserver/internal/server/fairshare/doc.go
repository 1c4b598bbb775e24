// Package fairshare applies the stored flow schemas and priority levels to
// requests, and maintains those that every cluster has (Kubernetes docs, "API
// Priority and Fairness").
//
// It connects package fairness, which decides which requests wait and stores
// nothing, with the stores; internal/server runs it.
package fairshare
