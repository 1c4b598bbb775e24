// Package workload holds what the kinds that make pods from a template have in
// common: how they choose their pods, what a template must be to be kept
// running, and how they are scaled.
//
// The resources of such kinds call it. It knows none of them.
package workload
