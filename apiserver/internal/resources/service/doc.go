// Package service holds what is particular to services: each has an address
// from the cluster's ranges to itself, and may have ports on every node.
// Allocations are stored next to the services, so that two servers never assign
// the same one. Traffic is kube-proxy's work.
//
// Addresses come from every ServiceCIDR that is ready and not being deleted
// (KEP-1880): the server's own range is one of them, named `kubernetes`, and
// users create others. The IPAddress is written first, then the service; if the
// service is refused, the address is released. If a server stops between the
// two, a loop finds what it left (housekeeping, NewServiceAddresses). So it is with
// node ports, which are bits of one object (PortRepair; housekeeping,
// NewServicePorts).
package service
