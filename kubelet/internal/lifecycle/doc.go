// Package lifecycle runs the steps of a pod's life: it calls the other rooms in order,
// from a pod's first sync (sync.go) until nothing is left of it on the node
// (terminate.go).
//
// The pod workers call it, one step at a time for one pod; it implements
// podworker.Syncer. What the steps share has files of its own: the pod's status
// (status.go), its volumes, its pull secrets, the resizing of its resources
// (resize.go), and what is remembered between two steps (record.go).
//
// It decides nothing about other pods, with two exceptions: a critical pod waits for
// those that make room for it (await.go), and a static pod ends its predecessors.
package lifecycle
