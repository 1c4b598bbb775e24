// Package oidc knows the ID tokens of an OpenID Connect issuer outside the
// cluster (Kubernetes docs, "OpenID Connect Tokens").
//
// The authentication chain calls it. It asks the issuer for its keys when it
// first sees a token of the issuer's, and again when a token is signed with a
// key that it does not know; it never asks about a single token or user.
package oidc
