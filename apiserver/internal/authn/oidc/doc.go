// Package oidc authenticates ID tokens of an OpenID Connect issuer outside the
// cluster (Kubernetes docs, "OpenID Connect Tokens").
//
// The authentication chain calls it. It fetches the issuer's keys when it first
// sees one of its tokens, and again when a token is signed with an unknown key;
// it never asks about a single token or user.
package oidc
