// Package audit records requests and their outcome: a policy says how much of
// each request is kept, in a log file, by a webhook, or both (Kubernetes docs,
// "Auditing").
//
// The filters feed it; authorization and admission add annotations. It decides
// nothing about a request, and without a policy it is not used at all.
package audit
