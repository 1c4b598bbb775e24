// Package managedfields tracks which field manager owns which field of an
// object (metadata.managedFields) and merges what is applied (Kubernetes docs,
// "Server-Side Apply").
//
// The registry's callers hand its functions to the registry with a change. The
// field sets of creates and updates are found by comparing the JSON before and
// after in the kind's shape, which costs little; what is out of the ordinary,
// and every apply, is left to structured-merge-diff, the library that upstream
// and client-go use. A test holds the two ways against each other. It stores
// nothing, and refuses a write only for what was applied: for a conflict, or
// for what can't be merged.
package managedfields
