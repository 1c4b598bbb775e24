// Package housekeeping holds the loops that a pod cluster can't do without:
// the default service account and the root certificate of each namespace, the
// end of namespaces, the ranges of nodes' pods, the life of nodes and the
// eviction of pods from lost ones, the garbage of pods and of owners'
// dependents, aggregated cluster roles, the binding of claims to volumes.
//
// The server starts them. Each can be left out with --controllers=-NAME, where
// kube-controller-manager, whose names they have, does its work; and each may
// run in several servers at once, because all they write is idempotent and
// guarded by what they saw; but for the ranges of nodes, which one server at a
// time may give, the one that leads. They go through the stores, never past them.
package housekeeping
