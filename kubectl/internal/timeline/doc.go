// Package timeline arranges a pod's way through the relay in time: when each
// leg was passed, how long it took, and what it waited for. It is what `kctl
// trace` prints.
//
// The programs' stamps (package proto/relay) are merged with what the API shows
// anyway, so that pods on a cluster without stamps have a timeline too, if a
// coarser one. The package is pure: no I/O and no clock.
package timeline
