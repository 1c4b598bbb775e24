// Package generate makes API objects from the parameters of a command line:
// the registry of generators behind `kctl run`, the checks that come before
// anything is sent, and the overrides that a user lays over what a generator
// made.
//
// The verbs in package command call it. It does no I/O and knows no flags: it
// gets values and returns an object, or an error that says which value is
// wrong.
package generate
