// Package activepods tells of the node's pods which of them hold resources, may run, end or are
// gone: no room knows that alone. The pod manager knows what is desired, the workers how far a pod
// is, the status manager what it is said to be, and the cache what the runtime has of it.
//
// Whoever decides about pods asks it. It keeps nothing, and never changes what it asks.
package activepods
