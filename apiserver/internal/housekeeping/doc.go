// Package housekeeping holds the control loops that a pod cluster can't do
// without: the default service account and the root certificate of each
// namespace, the end of namespaces, pod ranges of nodes, the node lifecycle and
// the eviction of pods from lost nodes, garbage collection of pods and of
// owners' dependents, aggregated cluster roles, the binding of claims to
// volumes.
//
// The server starts them. Each can be switched off with --controllers=-NAME, for
// kube-controller-manager to do its work, whose names they share. Each may run in
// several servers at once, because all their writes are idempotent and guarded by
// the state they saw; except the loop that assigns nodes' ranges, which only the
// leader may run. They go through the stores, never around them.
package housekeeping
