// Package certificatesigningrequest holds what is particular to certificate
// signing requests: the server sets the requester, the spec never changes, and
// approval and the certificate itself have subresources, which admission guards
// (Kubernetes docs, "Certificates and Certificate Signing Requests").
package certificatesigningrequest
