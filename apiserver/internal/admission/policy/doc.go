// Package policy applies users' policies in CEL to requests:
// ValidatingAdmissionPolicy and MutatingAdmissionPolicy (Kubernetes docs,
// "Validating Admission Policy", "Mutating Admission Policy").
//
// A Follower keeps policies with their bindings in memory; an expression is
// compiled when it is first used, and evaluated within upstream's cost limits.
// A request that no binding selects costs a look at that list. Parameter
// objects are read from the cache of their resource.
//
// The chain calls the plugins. They ignore requests for policies and bindings
// themselves, so that a policy can't protect itself from removal; only the policies that
// are configured by files apply to them.
package policy
