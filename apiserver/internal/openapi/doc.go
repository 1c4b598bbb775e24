// Package openapi describes the API in OpenAPI v2 and v3: the types, derived
// from the Go types themselves, and the paths that take them.
//
// Clients use it to check manifests before sending them, to explain fields, and
// to find out a path's parameters. The server installs a Handler under
// /openapi/. Documents are made at the first request, and only the compressed
// answers are kept.
package openapi
