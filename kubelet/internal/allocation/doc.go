// Package allocation remembers how much cpu and memory each container, and each pod as a
// whole, was granted, and what it currently runs with. A user may change a running pod's
// resources at any time; until the node has room for that, and until it is done, the
// granted and the actual resources differ from the spec.
//
// The kubelet asks it in every sync of a pod. It decides from its arguments and
// touches nothing on the machine.
package allocation
