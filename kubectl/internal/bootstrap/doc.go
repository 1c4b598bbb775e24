// Package bootstrap has what machines need to become nodes of a cluster: the
// tokens that let them in, the rights that go with these, how a machine finds out
// that a server is the cluster's before it sends it a token, what is checked on
// the machine, and the files that its kubelet starts from (Kubernetes docs,
// "Authenticating with Bootstrap Tokens", "TLS bootstrapping").
//
// `kctl token`, `kctl join` and `kctl reset` call it. It never starts a kubelet
// itself: systemd or the caller does.
package bootstrap
