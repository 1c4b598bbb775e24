// Package configcontroller is the config controller of API Priority and Fairness
// (Kubernetes docs): it applies the stored flow schemas and priority levels to
// requests, and maintains those that every cluster has.
//
// It connects package fairness, which decides which requests wait and stores
// nothing, with the stores; internal/server runs it.
package configcontroller
