// Package presence keeps the endpoints of the service `kubernetes`: the
// addresses of those API servers that are alive. Each server that others can
// reach renews a Lease of its own in kube-system and sees to it that the
// endpoints name the holders of the fresh ones, and nobody else.
//
// Package server calls it, on every server, whoever leads. It never touches
// the service itself, and asks no other server anything: a lease that no
// longer changes is all it takes to be left out.
package presence
