// Package watch keeps a program's view of a part of the API current: a
// Reflector lists a resource, watches it from that revision on, resumes where
// a watch broke off, and lists again only when the server no longer has the
// revision or sends an error or nonsense after it; a Store holds what it brings,
// indexed, and tells handlers.
//
// Schedulers, kubelets and clients use it. It never writes to the API.
package watch
