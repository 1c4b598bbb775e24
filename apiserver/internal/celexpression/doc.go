// Package celexpression compiles and evaluates the CEL expressions that users
// write into objects: admission policies, webhooks' match conditions, the rules
// of custom resources (Kubernetes docs, "Common Expression Language in
// Kubernetes"). It offers four things:
//
//   - Environment, Kubernetes' own set of libraries, language features and
//     costs, which callers extend by their variables and types;
//   - Compile, which turns a text into a Program or says what is wrong with it
//     in upstream's words;
//   - Program.Evaluate, which ends when it has cost too much: each call has a
//     limit of its own, and draws on a Budget that a request's expressions share;
//   - Authorizer, by which an expression asks what a user may do.
//
// Programs are safe for concurrent use, and dear to make: callers keep them for
// as long as the object they stand in stays as it is. Nothing here is loaded
// before the first expression comes. It knows nothing of objects or requests.
package celexpression
