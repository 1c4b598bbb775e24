// Package command is kctl's command line: one file a verb, and beside them
// what the verbs share (root.go: the tree and the flags of all; errors.go: what
// users read when something fails, and exit codes; objects.go: which objects
// the arguments mean).
//
// Only cmd/kctl calls it. Verbs put flags into the options of the packages
// that do the work (generate, printer, manifest, …), and talk to the server
// through package proto/rest.
package command
