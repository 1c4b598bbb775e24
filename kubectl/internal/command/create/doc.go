// Package create holds `kctl create` and the verbs below it: objects from files,
// or one object from flags, which package generate makes.
//
// Only the root of the command line calls it. It never changes existing
// objects; package change does.
package create
