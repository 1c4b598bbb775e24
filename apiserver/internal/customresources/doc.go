// Package customresources serves what CustomResourceDefinitions define: it
// follows the definitions, accepts their names, and has for every version that
// is served a registry.Resource over the same store and cache as any other
// resource. It makes them when they are first asked for, without a restart, and
// ends them with their definition.
//
// The server routes requests to it that no built-in resource answers; discovery,
// OpenAPI and the housekeeping ask it what there is. Nothing of an object is
// known here but what its schema says.
package customresources
