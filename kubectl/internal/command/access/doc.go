// Package access holds the verbs about who may do what: auth, and certificate, by
// which requests for certificates are answered.
//
// Only the root of the command line calls it. Package settings writes down which
// user kctl itself is.
package access
