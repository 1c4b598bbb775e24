// Package progress shows a pod's progress while `kctl run` waits for it:
// queued, scheduled, image, created, started, ready, and, once known, the
// reason why it is stuck.
//
// Look decides from the pod and its events and is pure; Live and Plain draw
// what it found, on a terminal or as lines. The package contacts no server.
package progress
