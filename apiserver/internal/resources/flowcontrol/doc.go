// Package flowcontrol says what is particular about the kinds by which requests
// are shared out among users: flow schemas and the priority levels they name
// (Kubernetes docs, "API Priority and Fairness").
package flowcontrol
