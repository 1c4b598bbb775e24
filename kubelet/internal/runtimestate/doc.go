// Package runtimestate is what a container runtime has of pods: their sandboxes
// and containers, dead or alive, and how they are. A Reader asks the runtime for
// it; the types are those by which all rooms speak of it.
//
// types.go has the types, query.go the Reader, labels.go what the kubelet writes
// on the containers that it makes to know them again, termination.go the messages
// that they leave, order.go which of them is the newest, and waiting.go why one
// that is to run does not.
//
// It never changes anything in the runtime, and knows nothing of what pods are to
// be.
package runtimestate
