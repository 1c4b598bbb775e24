// Package nodenetwork connects the pods of several nodes, where nobody installs
// a network of their own: it writes the CNI configuration that gives this
// node's pods addresses of the node's range (spec.podCIDRs), keeps a way to the
// ranges of all other nodes, by routes over a common link or through a VXLAN,
// and has what leaves the cluster leave with the node's address.
//
// The kubelet runs it with --node-network; without that flag it leaves the
// network to whoever has put a CNI configuration on the node. It never touches
// links, routes and rules that are not its own, and it enforces no network
// policies.
package nodenetwork
