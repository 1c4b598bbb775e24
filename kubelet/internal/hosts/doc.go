// Package hosts names pods: the host name that a pod's containers have, and the hosts
// file that they see as /etc/hosts.
//
// Package runtimeconfig calls it. The hosts file exists before any container that has
// it mounted, and is filled when the pod's addresses are known, before the container
// is started.
package hosts
