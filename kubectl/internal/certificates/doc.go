// Package certificates keeps the files by which the programs of a cluster know
// each other, in one directory: authorities, certificates and keys below pki/,
// as kubeadm lays them out, and kubeconfigs beside it. It makes what is not
// there, renews what ends, and says what is wrong with what is there.
//
// `kctl pki`, `kctl up`, `kctl join` and `kctl doctor` call it. It never
// replaces a file that is good, nor one that it does not understand, and never
// talks to anybody.
package certificates
