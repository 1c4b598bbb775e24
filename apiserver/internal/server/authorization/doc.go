// Package authorization puts together, from the flags or from the file that they
// name, the authorizers that decide who may do what, in the order in which they
// are asked.
//
// internal/server makes it once; what each mode decides by is said in authz and
// the rooms below it.
package authorization
