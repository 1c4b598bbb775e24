// Package accept reads what a client accepts of the forms that an answer can have
// (RFC 9110, "Accept"), as kube-apiserver reads it.
//
// The rooms that answer clients call it. It knows the header, and nothing of what
// is answered.
package accept
