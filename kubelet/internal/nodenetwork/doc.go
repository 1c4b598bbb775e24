// Package nodenetwork connects the pods of several nodes if no other network is
// installed: it writes the CNI configuration that gives this node's pods
// addresses from the node's range (spec.podCIDRs), maintains routes to the
// ranges of all other nodes, over a common link or through a VXLAN, and
// masquerades what leaves the cluster with the node's address.
//
// The kubelet runs it with --node-network; without that flag the network is
// that of the CNI configuration on the node. It never touches links, routes and
// rules that are not its own, and it enforces no network policies.
package nodenetwork
