// Package generate makes API objects from the parameters of a command line: the
// generators behind `kctl run` and `kctl create`, the checks that come before
// anything is sent, and the overrides that a user lays over what a generator
// made.
//
// The verbs in package command call it. It sends nothing and knows no flags: it
// gets values and returns an object, or an error that says which value is
// wrong.
package generate
