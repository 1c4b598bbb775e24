// Package feed turns what the API server tells of pods and nodes into what the
// queue and the cache know, and into the events that bring waiting pods back.
//
// The reflectors call it, from one goroutine each. It decides only where
// something belongs: a pod with a node counts in the cache, a pod without one
// waits in the queue, a pod that ended is nobody's.
package feed
