// Package certificates keeps, in one directory, the files by which the programs
// of a cluster recognise each other: authorities, certificates and keys below
// pki/, as kubeadm lays them out, and kubeconfigs beside it. It makes what is
// missing, renews what expires, and says what is wrong with what is there.
//
// `kctl pki`, `kctl up`, `kctl join` and `kctl doctor` call it. It never
// replaces a good file, nor one that it does not understand, and does no
// network I/O.
package certificates
