// Package waitingpods holds the pods that have room on a node and wait for a Permit
// plugin's word, or for the PreBind plugins' work, before they are bound (Kubernetes docs,
// "Scheduling Framework", Permit, PreBind).
//
// The cycle adds a pod and waits for its end; plugins allow and reject; the event handlers
// reject pods that will not be bound, and preemption takes the room of both kinds away. It
// decides nothing, and starts no goroutine: callers wait on their own.
package waitingpods
