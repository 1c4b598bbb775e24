// Package clientauth finds out who a server's client is by what its connection and its
// headers show: a certificate of an authority that the server trusts, or that of a proxy
// which names the user in headers (Kubernetes docs, "Authenticating"). It also finds the
// token that a request shows.
//
// The API server, the scheduler and the kubelet call it. It asks nobody, and doesn't decide
// what the client may do.
package clientauth
