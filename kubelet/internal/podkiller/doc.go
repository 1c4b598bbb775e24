// Package podkiller ends pods that were not deleted, for a reason of the node's own: it is short of
// something, makes room for a critical pod, or is shut down. It says how and why to the pod's
// worker, which does the rest.
//
// The sync handler, the eviction and the shutdown call it. It never decides which pod ends, and
// waits for none.
package podkiller
