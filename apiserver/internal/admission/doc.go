// Package admission holds the chain of plugins that may change or refuse an
// object on its way into the registry: first every mutating plugin, then, after
// validation, every validating one. Each folder below holds one plugin.
//
// Plugins see decoded, defaulted objects. They never write to storage.
package admission
