// Package validationrules works with the CEL rules in schemas of custom resources
// (x-kubernetes-validations; Kubernetes docs, "Validation rules"): it refuses
// those that can't be compiled or may cost too much, and validates values with
// the others.
//
// The strategy of definitions calls Check; customresources compiles the Rules
// of each version and runs them if the schema's own validation has found
// nothing that could break a rule. A rule's cost is bounded twice: estimated
// when the definition is written, and counted while the rules of an object run.
// It knows nothing of HTTP, and stores nothing.
package validationrules
