// Package configuration reads the file of --authorization-config: which
// authorizers decide, in which order, and which requests a webhook is asked
// about (Kubernetes docs, "Authorization", "Configuring the API Server using an
// authorization config file").
//
// The server calls it at start and when the file has changed. It builds no
// authorizer and calls no service.
package configuration
