// Package hosts_test runs clusters of several hosts. Each host is a network
// namespace and a mount namespace, with a containerd and a kubelet of its own;
// a bridge in one more namespace, where the control plane is, connects them.
// Links are cut, programs killed, members of etcd lost.
//
// All traffic stays in these namespaces; the tests' clients dial from inside
// them.
package hosts_test
