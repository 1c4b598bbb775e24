// Package timeline lays a pod's way through the relay out in time: which leg
// was passed when, how long it took, and what it had to wait for. It is what
// `kctl trace` prints.
//
// Stamps of the programs (package proto/relay) are merged with what the API
// tells anyway, so that pods on a cluster whose programs make no stamps have a
// timeline too, if a coarser one. The package is pure: no I/O and no clock.
package timeline
