// Package workload holds what the kinds that make pods from a template have in
// common: how they choose their pods, which templates they accept, and how they
// are scaled.
//
// The rooms of these kinds call it. It knows none of them.
package workload
