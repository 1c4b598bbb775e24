// Package volume makes the volumes of pods on the node: it mounts them before
// the pod's containers are created, keeps those with content from the API up to
// date, and removes them when the pod has ended.
//
// The way through the room: Check (is everything the pod asks for supported) →
// Manager.Mount (all volumes of a pod, side by side) → Manager.Mounts (what one
// container mounts where, subPaths resolved) → Manager.Run (new content for
// running pods) → Manager.Unmount. There is one folder for each kind of volume;
// keys, atomic and mount are what the kinds share.
//
// Everything is below RootDir/pods/UID, named as upstream names it, so that
// either kubelet finds what the other one left:
//
//	volumes/kubernetes.io~KIND/NAME       a volume; of one that is claimed the persistent one's name
//	volume-subpaths/NAME/CONTAINER/INDEX  a subPath, bound
//
// There is no other record: what is mounted is read from the kernel, and a
// volume with content is complete when its ..data exists.
//
// Admission calls Check; the pod workers call the rest. The room never reads
// the API except through Objects, never decides about a pod, and records no
// events: it returns errors whose text is fit for one.
package volume
