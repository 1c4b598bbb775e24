// Package podcertificaterequest holds what is particular to requests for pods'
// certificates: kubelets create them for their pods, signers answer them once
// (KEP-4317).
package podcertificaterequest
