// Package harness starts a whole cluster of the built programs, or a part of
// one, for a test: in a directory of the test's own, with its own ports,
// containerd and network, by the same `kctl up` and `kctl down` that users
// call. When the test ends, everything is removed, and a leaked process, mount,
// namespace, link, rule or cgroup fails it.
//
// All whole-system tests use it. It imports none of the programs.
package harness
