// Package status says how a pod is, and sees to it that the API knows.
//
// Generate is a pure function from what is desired, what the runtime has and
// what the probes found to the pod's status in the API: phase (phase.go),
// conditions (conditions.go), container states (containers.go). The Manager
// keeps each pod's newest status and sends it as a patch, one under way per
// pod; it deletes the pod's object when the pod is finished and its deletion
// was asked for. Pod workers write it, the server reads it.
//
// It never asks the runtime, and it leaves alone what others write into a
// pod's status.
package status
