// Package informer keeps in memory what the server needs to know about stored
// objects for its own decisions: an Informer follows one resource, as client-go's
// does, but reads the store directly and keeps only a projection of each object.
//
// Authorizers and housekeeping loops read it. It never answers requests: those
// go to the stores, which have more and can wait for a revision. Listeners are for changes of what is
// not stored.
package informer
