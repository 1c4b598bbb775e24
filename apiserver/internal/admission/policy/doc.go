// Package policy holds requests to the policies that users have written in CEL:
// ValidatingAdmissionPolicy and MutatingAdmissionPolicy (Kubernetes docs,
// "Validating Admission Policy", "Mutating Admission Policy").
//
// A Follower keeps policies with their bindings in memory; an expression is
// compiled when it is first asked, and evaluated within the cost that upstream
// allows. A request that no binding is about costs a look at that list. Objects
// that bindings name as parameters are read from the cache of their resource.
//
// The chain calls the plugins. They are never asked about policies and bindings
// themselves, so that a policy can't keep itself in place.
package policy
