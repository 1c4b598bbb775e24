// Package mergeschema describes the structure of a kind's values for merging: which
// parts are merged one by one, which are replaced as a whole, and what
// identifies the elements of a list (Kubernetes docs, "Server-Side Apply",
// "Merge strategy").
//
// openapi publishes it and managedfields works with it. Schemas of built-in
// kinds are derived from their Go types (Of); those of other kinds are made by
// whatever serves them. It never looks at a value.
package mergeschema
