// Package openapi describes the API in OpenAPI v2 and v3: what the types look
// like, read off the Go types themselves, and which paths take them.
//
// Clients ask for it to check manifests before they send them, to explain
// fields, and to find out what parameters a path takes. The server installs a
// Handler under /openapi/. Nothing is made before the first question, and of
// what was made only the compressed answers are kept.
package openapi
