// Package node keeps the API's picture of this machine: it registers the Node,
// reports what it has (machine.go), how it is (build.go) and that it is alive
// (lease.go), and registers it again if somebody deletes it.
//
// The kubelet runs it; admission and mirror pods read the Node from it. It
// never taints or labels a node that is registered already, except for the
// labels that the kubelet owns.
package node
