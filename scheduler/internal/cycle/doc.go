// Package cycle brings pods to nodes, one attempt at a time: pop, look at the
// snapshot, filter, score, assume — and then, beside the next attempts, bind.
// Scheduling cycles are serial, so that each decision sees all earlier ones;
// binding cycles are parallel, because they wait for the API server.
//
// The app runs it while this scheduler leads. It reaches the API only through
// the Bind plugins and the small interfaces in this package, and its only state
// is what is in flight: after a crash, the watch brings the pods that still
// have no node again.
//
// The files in the order of a pod's way: cycle.go (the loop), schedulingcycle.go
// (from the queue to an assumed pod), schedulepod.go and prioritize.go (which
// nodes are feasible, and which of them is best), bindingcycle.go (Permit,
// PreBind, and telling the API server), failure.go (undoing an attempt).
// signaturecache.go has the answers of plugins for pods that are alike.
package cycle
