// Package shape says how values of a kind are put together, as far as merging
// two of them goes: which parts stand for themselves, which are replaced as a
// whole, and by what the elements of a list are told apart (Kubernetes docs,
// "Server-Side Apply", "Merge strategy").
//
// openapi publishes it and managed works with it. Shapes of built-in kinds are
// read off their Go types (Of); of other kinds whoever serves them makes the
// shapes. It never looks at a value.
package shape
