// Package rules works with the rules in CEL that schemas of custom resources
// hold (x-kubernetes-validations; Kubernetes docs, "Validation rules"): it
// refuses those that can't be compiled or may cost too much, and validates
// values by the others.
//
// The strategy of definitions calls Check; customresources compiles the Rules
// of each version and runs them after the schema has found nothing that a rule
// might trip over. What a rule may cost is bounded twice: estimated when the
// definition is written, and counted while the rules of an object run. It
// knows nothing of HTTP, and stores nothing.
package rules
