// Package endpointreconciler maintains the endpoints of the service `kubernetes`: the
// addresses of the API servers that are alive. Each server that others can
// reach renews a Lease of its own in kube-system and makes the endpoints name
// exactly the holders of fresh ones.
//
// Package server runs it on every server, whichever leads. It never changes the
// service itself, and contacts no other server: a server whose lease no longer
// changes is left out.
package endpointreconciler
