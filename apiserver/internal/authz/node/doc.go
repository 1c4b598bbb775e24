// Package node allows each kubelet what it needs for the pods bound to its
// node, and no more (Kubernetes docs, "Using Node Authorization"). A kubelet is
// a user system:node:NAME in the group system:nodes.
//
// The authorization chain calls it; the admission plugin NodeRestriction
// decides what a kubelet may write into an object.
package node
