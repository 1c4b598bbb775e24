// Package volumebinding is the plugin VolumeBinding: a pod goes where the volumes
// of its claims can be used, and claims that wait for a pod get volumes for the
// node that was chosen for it: existing ones, or new ones made by a driver
// (Kubernetes docs, "Storage Classes", volume binding mode).
//
// The profile builds it. It never completes a binding: it writes which volume is
// for which claim, or which node was chosen, and waits until the controller of
// volumes has done the rest.
package volumebinding
