// Package podsecurity holds pods to the Pod Security Standards that their
// namespace asks for by its labels: it refuses (enforce), warns, and notes in
// the audit log (Kubernetes docs, "Pod Security Admission"). What makes a pod
// baseline or restricted is k8s.io/pod-security-admission's to say.
package podsecurity
