// Package signing knows what each of Kubernetes' own signers permits in a
// certificate request, and signs what is permitted (Kubernetes docs,
// "Certificates and Certificate Signing Requests", "Kubernetes signers").
//
// The housekeeping loops that approve and sign requests call it. It decides by
// the request alone; the caller checks whether it was approved.
package signing
