// Package machine holds the verbs about the cluster and the node on this machine,
// and their upkeep: up, down and status; join, reset and token; pki, doctor and the
// project's own images.
//
// Only the root of the command line calls it. The work is done by the packages
// cluster, bootstrap, certificates, doctor and images; here are flags and what is
// printed.
package machine
