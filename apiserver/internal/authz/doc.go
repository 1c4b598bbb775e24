// Package authz decides whether a user may do what a request asks for.
//
// Authorizers are asked in the order of --authorization-mode: Allow and Deny
// end the chain, NoOpinion passes on, and a request that none allows is
// forbidden.
package authz
