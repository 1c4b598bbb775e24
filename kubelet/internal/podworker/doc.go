// Package podworker gives each pod of the node one worker that brings the pod
// to what is desired of it, step by step and never two steps at once: it waits
// to start, is synced, terminated, and cleaned up after.
//
// Package synchandler tells it of pods (Update, Resync, SyncDue), and podkiller
// of pods to end; it calls the Syncer, whose scripts do the work, and acts at
// once on what they return. The rules of the pod's life are in machine.go, the
// goroutines in workers.go.
//
// It never talks to the API or to the runtime itself, and it never starts a pod
// while another pod of the same full name is not finished.
package podworker
