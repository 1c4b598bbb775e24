// Package authn finds out who sends a request. Authenticators are tried in the
// order in which the flags built them; the first that knows the credential
// answers.
//
// It decides nothing about what the user may do: that is authz's.
package authn
