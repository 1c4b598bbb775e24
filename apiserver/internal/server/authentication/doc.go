// Package authentication puts together, from the flags or from the file that
// they name, the chain that finds out who asks, in upstream's order.
//
// internal/server makes it once; what each kind of credential is, is said in
// authn and the rooms below it.
package authentication
