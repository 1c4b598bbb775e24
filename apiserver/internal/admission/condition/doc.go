// Package condition says what the expressions of webhooks and admission
// policies see of a request (object, oldObject, request, params,
// namespaceObject, authorizer, variables), compiles them against that, and
// evaluates the match conditions that both have (Kubernetes docs, "Validating
// Admission Policy", "Validation Expression").
//
// The webhook and policy rooms evaluate by it; the room of their resources
// compiles by it, to say what is wrong with an expression before it is stored.
// It decides nothing about a request.
package condition
