// Package hosts_test runs clusters of several hosts: each is a network namespace
// with a mount namespace of its own, with its own containerd and kubelet, and
// all hang on a bridge in one more, where the control plane is. Links are cut,
// programs killed, members of etcd lost.
//
// Traffic stays in these namespaces; the tests' clients dial from inside.
package hosts_test
