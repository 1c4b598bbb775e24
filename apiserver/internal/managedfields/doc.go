// Package managedfields tracks which field manager owns which field of an
// object (metadata.managedFields) and merges what is applied (Kubernetes docs,
// "Server-Side Apply").
//
// The registry's callers pass its functions to the registry with a change. The
// field sets of creates and updates are found by comparing the JSON before and
// after according to the kind's schema, which costs little; unusual cases, and
// every apply, are left to structured-merge-diff, the library that upstream and
// client-go use. A test compares the two ways. It stores nothing, and refuses
// only applies: for conflicts, and for what can't be merged.
package managedfields
