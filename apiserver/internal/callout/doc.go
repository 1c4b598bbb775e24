// Package callout asks a service outside the server for a review: it posts an
// object and reads the service's answer, over TLS, with few retries and in
// bounded time.
//
// The webhook modes of authn and authz call the Service that a file names,
// admission and the conversion of custom resources the Clients that objects of
// users name. It takes no decision, follows nobody elsewhere, and remembers
// answers only where it is told to.
package callout
