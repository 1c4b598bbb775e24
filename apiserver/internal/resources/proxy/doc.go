// Package proxy forwards requests to pods, services and nodes: pods/proxy,
// services/proxy and nodes/proxy (Kubernetes docs, "Access Services Running on
// Clusters").
//
// The set of resources installs its subresources; authorization comes before.
// It follows no redirects, forwards no credentials, and connects to no loopback
// or link-local address unless a node has it.
package proxy
