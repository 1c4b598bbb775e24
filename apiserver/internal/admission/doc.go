// Package admission holds the chain of plugins that may change or refuse an
// object on its way into the registry: first every mutating plugin, then, after
// validation, every validating one.
//
// A folder below holds one plugin, or a few that belong together, and says what it
// enforces; the exceptions are what plugins are made with. plugins knows all plugins by name,
// and configuration reads their configuration. lookup finds the objects that they decide by.
// match, condition, typecheck and manifest serve webhook and policy, the plugins of
// users' own rules: which requests a rule is for, what its expressions are, what is
// wrong with them, and rules that are read from files.
//
// Plugins see decoded, defaulted objects. They never write to storage.
package admission
