// Package fairshare has requests shared out by the flow schemas and priority
// levels that are stored, and keeps those that every cluster has (Kubernetes
// docs, "API Priority and Fairness").
//
// It connects package fairness, which decides who waits for whom and stores
// nothing, with the stores; internal/server runs it.
package fairshare
