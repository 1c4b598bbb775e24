// Package runtimestate describes pods' state in the container runtime: their
// sandboxes and containers, dead or alive. A Reader asks the runtime for it; all
// rooms use its types.
//
// types.go has the types, query.go the Reader, labels.go what the kubelet writes
// on the containers that it makes to know them again, termination.go the messages
// that they leave, order.go which of them is the newest, and waiting.go why one
// that is to run does not.
//
// It never changes anything in the runtime, and knows nothing about the desired
// state of pods.
package runtimestate
