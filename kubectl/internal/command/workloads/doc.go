// Package workloads holds the verbs about what runs pods: set, scale, autoscale,
// rollout and expose. They share the knowledge of where an object has its pod
// template (set.go).
//
// Only the root of the command line calls it. Package pods deals with the pods
// themselves.
package workloads
