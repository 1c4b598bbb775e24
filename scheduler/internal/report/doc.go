// Package report tells people what became of a pod: an event for each attempt,
// and the condition PodScheduled=False if there is no node for it (the
// condition of a pod that is bound is set by the API server with the binding).
//
// The cycle and the queue call it; it never makes them wait. Run sends the
// patches, only the latest for each pod.
package report
