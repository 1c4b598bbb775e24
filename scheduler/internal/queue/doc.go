// Package queue keeps the pods that wait for a node, and says which is next.
//
// The event handlers tell it of pods and of events in the cluster; the cycle pops
// pods and gives each back as Done or by AddUnschedulable. A pod is in one part at
// a time: the active queue (activeQ), the back-off queue (backoffQ), the
// unschedulable pods, the gated ones, or in flight:
//
//	new       → gated | active
//	gated     → active | backoff                an event, a change of the pod, or the flush of leftovers, and no
//	                                            PreEnqueue plugin rejects it any more
//	active    → in flight                       popped
//	in flight → (left)                          Done, or deleted
//	in flight → backoff                         AddUnschedulable after an error, or an event that may help came meanwhile
//	in flight → unschedulable                   AddUnschedulable, and nothing that may help has happened
//	unschedulable → active | backoff            an event, a change of the pod, or the flush of leftovers; at once
//	                                            for a plugin that was only Pending
//	in flight, unschedulable → gated            instead of active or backoff, if a PreEnqueue plugin rejects it
//	backoff   → active                          its time is over
//	backoff   → in flight                       nothing is active, and it was no error that put it there
//
// Any of them → (left) when the pod is deleted or gets a node.
//
// The package decides nothing about nodes and does no I/O. It starts no
// goroutine: Run, whose owner is the caller, serves the timers.
package queue
