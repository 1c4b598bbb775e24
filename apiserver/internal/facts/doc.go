// Package facts keeps in memory what the server itself has to know of stored
// objects for its own decisions: a Mirror follows one resource, as an informer
// does for a client, and keeps, of each object, only what a projection takes
// from it.
//
// Authorizers and housekeeping loops read it. It never answers requests: those
// go to the stores, which know more and can wait for a revision.
package facts
