// Package eventhandlers turns what the API server says about pods and nodes into the
// contents of the queue and the cache, and into the events that bring waiting
// pods back.
//
// The reflectors call it, from one goroutine each. It decides only where
// something belongs: a pod with a node counts in the cache, a pod without one
// waits in the queue, a pod that has ended is in neither.
package eventhandlers
