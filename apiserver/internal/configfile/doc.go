// Package configfile reads the server's configuration files that hold an object
// of apiserver.config.k8s.io, strictly, and follows those that may change while
// the server runs.
//
// The rooms that know what is in such a file call it; it knows none of the
// kinds.
package configfile
