// Package signing says what each of Kubernetes' own signers permits in a
// request for a certificate, and signs what is permitted (Kubernetes docs,
// "Certificates and Certificate Signing Requests", "Kubernetes signers").
//
// The housekeeping loops that approve and sign requests call it. It decides by
// the request alone: whether it was approved is the caller's to know.
package signing
