// Package service says what is particular about services: each has an address
// of the cluster's range to itself, and may have a port on every node. What is
// allocated lies beside the services, so that two servers never give one thing
// twice. Nobody here sends traffic to them: that is kube-proxy's work.
package service
