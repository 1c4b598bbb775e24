// Package audit writes down who asked for what and what came of it: by a
// policy that says how much of each request is kept, into a log file, to a
// webhook, or both (Kubernetes docs, "Auditing").
//
// The filters feed it, authorization and admission add annotations. It decides
// nothing about a request, and without a policy no request ever meets it.
package audit
