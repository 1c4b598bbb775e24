// Package framework is the scheduler's skeleton: the extension points at which
// plugins decide about a pod, what they say (Status), what they look at
// (PodInfo, NodeInfo), and the runtime that calls the plugins of one profile
// in their order.
//
// The cycle calls the runtime; plugins implement the interfaces; the queue and
// the cache use the types. The package does no I/O, starts no goroutine and
// reads no clock. It keeps nothing between two attempts: what a plugin wants
// to hand to its own later points goes through CycleState.
//
// # Plugins of your own
//
// A plugin is a type with a Name and the methods of one or more of the
// interfaces in plugin.go. It is made by a Factory, which a main function of
// your own hands to command.Main; a KubeSchedulerConfiguration then enables it
// by its name. The folder examples/teamnodes is a whole one.
//
// Methods of one attempt come one after the other, from PreEnqueue to Permit;
// PreBind, Bind, PostBind and Unreserve come from other goroutines, beside
// later attempts at other pods, and /debug/explain calls PreFilter, Filter,
// PreScore and Score at any time. So a plugin keeps what belongs to one attempt
// in its CycleState, and guards everything else. Nothing that a plugin is given
// is its own to change, except the CycleState; nodes are what they are from
// PreFilter to Permit, and others' after it.
//
// A Filter or Score plugin that looks at nothing but the pod and the node should
// implement Sign, too: one that does not has the scheduler ask all filters about
// each node for each pod.
package framework
