// Package certificatesigningrequest says what is particular about requests for
// certificates: who asks is set by the server, what is asked for never changes,
// and approval and the certificate itself have ways of their own, which
// admission guards (Kubernetes docs, "Certificates and Certificate Signing
// Requests").
package certificatesigningrequest
