// Package certificates holds the plugins that guard requests for certificates:
// who approves them and who signs them must be allowed to for that signer, and
// nobody gets a certificate that makes them a master of the cluster (Kubernetes
// docs, "Certificates and Certificate Signing Requests").
//
// The admission chain calls them.
package certificates
