// Package cycle brings pods to nodes, one attempt at a time: pop, look at the
// snapshot, filter, score, assume — and then, beside the next attempts, bind.
// Placement is serial, so that each decision sees all earlier ones; binding is
// parallel, because it waits for the API server.
//
// The app runs it while this scheduler leads. It reaches the API only through
// the Bind plugins and the small interfaces in this package, and its only state
// is what is in flight: after a crash, the watch brings the pods that still
// have no node again.
//
// The files in the order of a pod's way: cycle.go (the loop), attempt.go (one
// try), place.go (which node), bind.go (telling the API server).
package cycle
