// Package access holds the verbs about who may do what: auth, and certificate, by
// which requests for certificates are answered.
//
// Only the root of the command line calls it. Which user kctl itself is, is package
// settings' to write down.
package access
