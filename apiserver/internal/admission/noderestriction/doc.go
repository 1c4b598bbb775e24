// Package noderestriction limits each kubelet to its own node, so that a stolen
// kubelet certificate compromises one node and not the cluster. It complements
// the node authorizer, which decides what a kubelet may read.
package noderestriction
