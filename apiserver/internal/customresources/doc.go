// Package customresources serves what CustomResourceDefinitions define: it
// follows the definitions, accepts their names, and has a registry.Resource for
// every served version, on the same kind of store and cache as any other
// resource. It makes these when first needed, and ends them with their
// definition.
//
// The server routes requests to it that no built-in resource answers; discovery,
// OpenAPI and housekeeping ask it what exists. It knows nothing about an object
// but its schema.
package customresources
