// Package generate makes API objects from the parameters of a command line: the
// generators behind `kctl run` and `kctl create`, the checks that come before
// anything is sent, and the overrides that a user lays over what a generator
// made.
//
// The verbs' rooms (below command) call it. It sends nothing and parses no
// flags: it gets values and returns an object, or an error that says which
// value is wrong, in kubectl's words.
package generate
