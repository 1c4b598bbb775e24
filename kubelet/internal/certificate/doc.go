// Package certificate obtains the certificates by which an API server
// recognises the kubelet, as a client and as a server, and keeps them valid
// (Kubernetes docs, "TLS bootstrapping" and "Configure Certificate Rotation for
// the Kubelet").
//
// Bootstrap is called before the kubelet has a client of its own; Rotator runs
// beside it. Both make a key that never leaves the machine, ask for a
// certificate by a CertificateSigningRequest, and wait until somebody has
// approved and signed it. They never approve anything themselves.
package certificate
