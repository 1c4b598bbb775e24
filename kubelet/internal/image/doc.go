// Package image makes sure that a container's image is on the node before the
// container is created: by pull policy, with the pod's pull secrets, a limit on
// parallel pulls, and back-off per pod and image.
//
// The pod runtime calls Ensure for all containers of a pod at once, while the
// sandbox is being made. Messages for users go into the pod's events, in
// upstream's words; the container's waiting reason is in the Error.
//
// Besides that, a Collector removes the least recently used images when their
// disk gets full.
package image
