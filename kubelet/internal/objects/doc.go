// Package objects reads what pods refer to by name from the API: secrets,
// config maps, service account tokens, and the volumes that they claim.
//
// Volumes and the pod runtime (environment, image pull secrets) ask it. It only
// ever reads and watches single objects by name, which is all that a node is
// authorized to do, and keeps them only while a registered pod refers to them.
// Another pod that refers to an object has it read again, so that a pod sees every
// change that was made before it was created. After that, the watch tells of changes
// (watch.go), or without one an object is read again after ttl. Callers that want the
// same object share one request. While the API is away, what was seen last is served.
//
// It never changes what it reads.
package objects
