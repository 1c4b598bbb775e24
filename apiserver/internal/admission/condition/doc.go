// Package condition defines what the expressions of webhooks and admission
// policies see of a request (object, oldObject, request, params,
// namespaceObject, authorizer, variables), compiles them, and evaluates the
// match conditions that both have (Kubernetes docs, "Validating Admission
// Policy", "Validation Expression").
//
// Packages webhook and policy evaluate with it; their resources compile with
// it, to report what is wrong with an expression before it is stored. It
// decides nothing about a request.
package condition
