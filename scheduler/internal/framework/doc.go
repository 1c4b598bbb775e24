// Package framework is the scheduler's skeleton: the extension points at which
// plugins decide about a pod, what they say (Status), what they look at
// (PodInfo, NodeInfo), and the runtime that calls the plugins of one profile
// in their order.
//
// The cycle calls the runtime; plugins implement the interfaces; the queue and
// the cache use the types. The package does no I/O, starts no goroutine and
// reads no clock. It keeps nothing between two attempts: what a plugin wants
// to hand to its own later points goes through CycleState.
package framework
