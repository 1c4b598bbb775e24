// Package core names what all programs of the project must agree on: the API
// types of the relay (Pod, Binding, Node, …, as aliases of k8s.io/api, so that
// the wire format is upstream's by construction), the PodUpdate by which a
// kubelet's pod sources speak to its sync loop, where each resource lives in
// the API, and the well-known names.
//
// Any package may import it. It does no work: no I/O, no clock, no state except
// the immutable Scheme.
package core
