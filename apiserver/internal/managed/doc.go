// Package managed keeps account of which manager set which field of an object
// (metadata.managedFields) and merges what is applied (Kubernetes docs,
// "Server-Side Apply").
//
// The registry's callers hand its functions to the registry with a change.
// Creates and updates are accounted for by comparing the JSON before and after
// with the kind's shape, which costs little; what is out of the ordinary, and
// every apply, is left to structured-merge-diff, the library that upstream and
// client-go use. A test holds the two ways against each other. It stores
// nothing and never refuses a write for its accounts.
package managed
