// Package chain builds the authorizers from the flags or from the file
// that they name, in the order in which they are asked.
//
// internal/server makes it once; package authz and the rooms beside this one say how each
// mode decides.
package chain
