// Package claim finds the persistent volumes that pods have claimed, and the groups that
// these give to pods, and says why one can't be used, in upstream's words, which people
// search for.
//
// Package volume calls it, and mounts what was found. It never mounts anything,
// never binds a claim to a volume, and keeps nothing.
package claim
