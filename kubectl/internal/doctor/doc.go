// Package doctor looks for problems of a machine, a cluster's certificates and their
// upkeep, its API server and its nodes, and says for each thing that it checks how it is
// and what to do.
//
// `kctl doctor` calls it, and `kctl join` for the machine. It changes nothing,
// never waits long, and shows no secret.
package doctor
