// Package relay names the hops of a pod's way through the programs and carries
// the times at which each was passed: what `kctl trace` shows.
//
// Every program stamps the hops in its part and attaches the stamps, as an HTTP
// header, to requests that it makes anyway (kctl to the create, the scheduler
// to the Binding, the kubelet to its status patches). The API server takes from
// each request those that it can know of, keeps them per pod in a bounded ring in
// memory, adds its own, and answers GET /debug/relay/namespaces/NS/pods/NAME with
// what all API servers of the cluster know. A server that does not know the header
// ignores it, so any of our programs can be replaced by upstream's, and only
// its stamps are missing. Nothing is written to the pod.
//
// A hop is stamped once. How containers are restarted later is told apart from that: the kubelet's
// status patches carry a Restart for each, and the last ones are kept.
//
// The package does no I/O and reads no clock: callers pass the time.
package relay
