// Package workloads holds the verbs about what runs pods: set, scale, autoscale,
// rollout and expose. They share where in an object its pod template is (set.go).
//
// Only the root of the command line calls it. Pods themselves are package pods'
// business.
package workloads
