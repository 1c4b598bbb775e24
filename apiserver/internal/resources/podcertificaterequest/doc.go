// Package podcertificaterequest says what is particular about requests for the
// certificates of pods: kubelets make them for their pods, signers answer them
// once and for all (KEP-4317).
package podcertificaterequest
