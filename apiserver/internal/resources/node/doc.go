// Package node holds what is particular to nodes: a kubelet creates its own
// with a status, and address ranges, once assigned, stay.
package node
