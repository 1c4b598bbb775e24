// Package framework is the scheduler's skeleton: the extension points at which
// plugins decide about a pod, what they say (Status), what they look at
// (PodInfo, NodeInfo), and the runtime that calls the plugins of one profile
// in their order.
//
// The cycle calls the runtime; plugins implement the interfaces; the queue and
// the cache use the types. The package does no I/O, starts no goroutine and
// reads no clock. It keeps nothing between attempts: a plugin passes data to
// its own later points through CycleState.
//
// # Plugins of your own
//
// A plugin is a type with a Name and the methods of one or more of the
// interfaces in plugin.go. A Factory makes it; your own main function passes
// that to command.Main, and a KubeSchedulerConfiguration enables the plugin by
// name. The folder examples/teamnodes is a complete example.
//
// Methods of one attempt come one after the other, from PreEnqueue to Permit;
// PreBind, Bind, PostBind and Unreserve come from other goroutines, beside
// later attempts at other pods, and /debug/explain calls PreFilter, Filter,
// PreScore and Score at any time. So a plugin keeps what belongs to one attempt
// in its CycleState, and guards everything else. It must not change anything
// that it is given, except the CycleState. Nodes stay as they are from
// PreFilter to Permit, and must not be used after that.
//
// A Filter or Score plugin that looks at nothing but the pod and the node should
// implement Sign, too: with one that does not, the scheduler has to ask all
// filters about each node for each pod.
package framework
