// Package negotiation parses the Accept header (RFC 9110) as kube-apiserver does.
//
// The packages that answer clients call it. It knows the header, and nothing of
// the answers.
package negotiation
