// Package bootstrap has what machines need to become nodes of a cluster: the
// tokens by which they are let in, the rights that go with these, how a machine
// finds out that a server is the cluster's before it tells it a token, what is
// checked on the machine, and the files that its kubelet starts from
// (Kubernetes docs, "Authenticating with Bootstrap Tokens", "TLS bootstrapping").
//
// `kctl token`, `kctl join` and `kctl reset` call it. It never starts a kubelet:
// that is systemd's, or the caller's.
package bootstrap
