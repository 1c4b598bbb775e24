// Package userns gives each pod that has a user namespace of its own
// (hostUsers: false, KEP-127) a range of the host's user and group ids, which no
// other pod has as long as the pod lives.
//
// The pod runtime asks it for a pod's range when it makes the pod's sandbox, as
// often as it likes; the kubelet gives a range back when the pod has ended. A
// range is recorded beside the pod's volumes, in upstream's file and format,
// before it is returned, so that a restarted kubelet knows which ranges are
// taken. It never looks at the runtime, and never changes the owner of a file:
// volumes are mapped when they are mounted.
package userns
