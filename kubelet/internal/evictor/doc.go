// Package evictor carries out what the eviction decides: it ends a pod and removes what that has
// written, and frees the node's disk of what nobody uses.
//
// The eviction manager calls it. It never decides which pod is evicted, or when.
package evictor
