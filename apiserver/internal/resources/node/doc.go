// Package node says what is particular about nodes: a kubelet creates its own
// with a status, and the address ranges once given to it stay.
package node
