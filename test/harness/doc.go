// Package harness starts a whole cluster of the built programs, or a part of
// one, for a test: in a directory of the test's own, with its own ports,
// containerd and network, by the same `kctl up` and `kctl down` that users
// call. When the test ends everything is taken away, and a leak of processes,
// mounts, namespaces, links, rules or cgroups fails it.
//
// All whole-system tests stand on it. It imports none of the programs.
package harness
