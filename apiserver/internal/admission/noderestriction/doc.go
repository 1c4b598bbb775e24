// Package noderestriction holds each kubelet to its own node: a stolen kubelet
// certificate is worth one node and not the cluster. It stands beside the node
// authorizer, which decides what a kubelet may read.
package noderestriction
