// Package authn finds out who sends a request. Authenticators are tried in the
// order in which the flags built them; the first that recognises the credential
// answers.
//
// It does not decide what the user may do; authz does.
package authn
