// Package resources holds what is particular to each resource the API server
// serves. Each folder below holds one resource: its strategy (defaults,
// validation, what an update may change, how it is deleted), its table columns
// and its subresources.
//
// A new resource is one folder, with a function that makes its registry.Served,
// and one line in rooms; only a resource that the server itself reads or writes
// is a field of Set. Its Go type is one line in package scheme.
//
// The server calls New once and installs what it returns. Nothing here stores
// anything by itself, and no folder knows another one.
package resources
