// Package serviceaccount makes and checks the JSON web tokens by which pods
// and other programs act as a service account (Kubernetes docs, "Managing
// Service Accounts", "Bound service account tokens").
//
// The subresource serviceaccounts/token calls the Issuer; the authentication
// chain and TokenReview call the Authenticator. Tokens are never stored: one
// becomes invalid before it expires when an object it is bound to is gone.
package serviceaccount
