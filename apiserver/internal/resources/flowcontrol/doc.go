// Package flowcontrol holds what is particular to the kinds that divide the
// server's capacity among clients: flow schemas and the priority levels they
// name (Kubernetes docs, "API Priority and Fairness").
package flowcontrol
