// Package configuration reads the file of --authentication-config: whose JSON
// web tokens are accepted, which users their bearers are, and what may be
// requested without a credential (Kubernetes docs, "Authenticating", "Using
// Authentication Configuration").
//
// The server calls it at start and when the file has changed. It verifies no
// token and calls no issuer: oidc does, and turns verified claims into users
// with a Mapping.
package configuration
