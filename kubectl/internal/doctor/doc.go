// Package doctor looks for what is wrong with a machine, a cluster's
// certificates, its API server and its nodes, and says of each thing that it
// looked at how it is and what to do.
//
// `kctl doctor` calls it, and `kctl join` for the machine. It changes nothing,
// waits for nobody long, and shows no secret.
package doctor
