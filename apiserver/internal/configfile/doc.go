// Package configfile strictly reads the server's configuration files with an
// object of apiserver.config.k8s.io, and follows those that may change while
// the server runs.
//
// The packages that know the content of such a file call it; it knows none of
// the kinds.
package configfile
