// Package progress shows how far a pod is while `kctl run` waits for it:
// queued, scheduled, image, created, started, ready, and, as soon as one is
// known, the reason why it goes no further.
//
// Look decides from the pod and its events and is pure; Live and Plain draw
// what it found, on a terminal or as lines. The package asks no server.
package progress
