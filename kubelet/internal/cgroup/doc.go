// Package cgroup keeps the control groups above a pod's containers: kubepods,
// one for each class of service in it, and one for each pod, in upstream's
// names, so that a pod as a whole has its share and its limits.
//
// Pod workers create a pod's group before its sandbox and destroy it when the
// pod is gone; the pod runtime asks for the name. The groups of single
// containers are the container runtime's.
//
// It works on cgroup v1 and v2, with the drivers cgroupfs (groups are
// directories that it makes) and systemd (groups are slices that it has systemd
// make, over D-Bus), and never touches a group outside its root.
package cgroup
