// Package service says what is particular about services: each has an address
// of the cluster's ranges to itself, and may have a port on every node. What is
// allocated lies beside the services, so that two servers never give one thing
// twice. Nobody here sends traffic to them: that is kube-proxy's work.
//
// Addresses are given of every ServiceCIDR that is ready and not being deleted
// (KEP-1880): the server's own range is one of them, by the name `kubernetes`,
// and users make others. An IPAddress is written first, then the service; if
// the service is refused, the address is given back, and what a server leaves
// that ends between the two is found by a loop (housekeeping, KeepAddresses).
package service
