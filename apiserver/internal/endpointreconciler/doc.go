// Package endpointreconciler maintains the endpoints of the service `kubernetes`: the
// addresses of the API servers that are alive. Each server that others can
// reach keeps its address in etcd under a lease of etcd's, where kube-apiserver keeps its own,
// and makes the endpoints name exactly those that are there.
//
// Package server runs it on every server, whichever leads. It never changes the
// service itself, and contacts no other server: a server that stops renewing its
// lease is left out when etcd drops the address.
package endpointreconciler
