// Package podsecurity holds pods to the Pod Security Standards that their
// namespace's labels name: it refuses (enforce), warns, and annotates the audit
// log (Kubernetes docs, "Pod Security Admission"). The library
// k8s.io/pod-security-admission defines what is baseline or restricted.
package podsecurity
