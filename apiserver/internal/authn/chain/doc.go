// Package chain builds the chain of authenticators from the flags or
// from the file that they name, in upstream's order.
//
// internal/server makes it once; package authn and the rooms beside this one say what
// each kind of credential is.
package chain
