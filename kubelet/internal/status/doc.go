// Package status computes a pod's status and keeps the API up to date with it.
//
// Generate is a pure function from the desired state, the state in the runtime
// and the probes' results to the pod's status in the API: phase (phase.go),
// conditions (conditions.go), container states (containers.go). The Manager
// keeps each pod's newest status and sends it as a patch, one under way per
// pod; it deletes the pod's object when the pod is finished and its deletion
// was asked for. Pod workers write it, the server reads it.
//
// It never asks the runtime, and it leaves alone what others write into a
// pod's status.
package status
