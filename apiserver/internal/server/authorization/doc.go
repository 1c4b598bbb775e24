// Package authorization builds the authorizers from the flags or from the file
// that they name, in the order in which they are asked.
//
// internal/server makes it once; package authz and its subpackages say how each
// mode decides.
package authorization
