// Package delegatedauth guards the scheduler's port as kube-scheduler's is guarded, by asking
// the API server (Kubernetes docs, "kube-scheduler", --authentication-* and --authorization-*):
// which authorities of clients and of proxies the cluster has (the ConfigMap
// extension-apiserver-authentication), whose a token is (TokenReview), and what a user may do
// (SubjectAccessReview).
//
// The app serves behind it. It knows nothing of what is served, and keeps no answer longer than
// its options say.
package delegatedauth
