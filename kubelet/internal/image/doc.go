// Package image sees to it that a container's image is on the node before the
// container is made: by pull policy, with the pod's pull secrets, a bound on
// pulls at one time, and back-off per pod and image.
//
// The pod runtime calls Ensure, for all containers of a pod at once and beside
// the making of the sandbox. What users should know of it goes into the pod's
// events, in upstream's words; what they see as the container's waiting reason
// is in the Error.
//
// Beside it a Collector removes the images that nobody has used for longest
// when their disk gets full.
package image
