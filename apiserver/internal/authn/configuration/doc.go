// Package configuration reads what --authentication-config says: whose JSON web
// tokens are accepted, who their bearers are, and what may be asked for without
// any credential (Kubernetes docs, "Authenticating", "Using Authentication
// Configuration").
//
// The server calls it at start and when the file has changed. It verifies no
// token and asks no issuer: oidc does, and has claims that it believes turned
// into users by a Mapping.
package configuration
