// Package lifecycle holds the scripts of a pod's life: the order in which a pod passes
// through the other rooms, from its first sync (sync.go) to when nothing is left of it
// on the node (terminate.go).
//
// The pod workers call it, one step at a time for one pod; it implements
// podworker.Syncer. What the steps have in common is in files of their own: the pod's
// status (status.go), its volumes, its pull secrets, the change of its resources
// (resize.go), and what is remembered of it between two steps (record.go).
//
// It decides nothing about other pods, with two exceptions: a critical pod waits for
// those that make room for it (await.go), and a static pod ends its predecessors.
package lifecycle
