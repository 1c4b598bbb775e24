// Package typecheck says what is probably wrong with the expressions of a
// validating admission policy: it compiles them for each type that the policy
// selects by name, with the fields that the type has (Kubernetes docs,
// "Validating Admission Policy", "Type checking").
//
// Package housekeeping writes the result into the policy's status. It does not
// change what the policy does: whether an expression can be stored is decided by
// its resource, without the types.
package typecheck
