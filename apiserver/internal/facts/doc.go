// Package facts keeps in memory what the server needs to know about stored
// objects for its own decisions: a Mirror follows one resource, as an informer
// does for a client, and keeps only a projection of each object.
//
// Authorizers and housekeeping loops read it. It never answers requests: those
// go to the stores, which have more and can wait for a revision.
package facts
