// Package cgroup manages the control groups above a pod's containers, under
// upstream's names: kubepods, one in it for each QoS class, and one for each
// pod, so that a pod as a whole has its share and its limits.
//
// Pod workers create a pod's group before its sandbox and destroy it when the
// pod is gone; the pod runtime asks for the name. The container runtime manages
// the groups of single containers.
//
// It works on cgroup v1 and v2, with the drivers cgroupfs (groups are
// directories that it makes) and systemd (groups are slices that systemd makes,
// asked over D-Bus), and never touches a group outside its root but those of
// daemons that it is told to bound.
package cgroup
