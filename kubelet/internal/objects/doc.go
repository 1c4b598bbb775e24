// Package objects reads what pods refer to by name from the API: secrets,
// config maps, service account tokens, and the volumes that they claim.
//
// Volumes and the pod runtime (environment, image pull secrets) ask it. It only
// ever reads single objects by name, which is all that a node is authorized to
// do, and keeps them only while a registered pod refers to them: for ttl, or
// until another pod that refers to them arrives, so that a pod sees every
// change that was made before it was created. Callers that want the same object
// share one request.
//
// It never lists or writes objects, and runs no goroutine of its own.
package objects
