// Package certificates holds the plugins that guard certificate requests:
// approving and signing them takes a right for the signer, and no one gets a
// certificate for the group system:masters (Kubernetes docs, "Certificates and
// Certificate Signing Requests").
//
// The admission chain calls them.
package certificates
