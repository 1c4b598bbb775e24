// Package bootstrap knows the roles and bindings that every cluster starts
// with, and brings the stored ones up to them: what is missing is added, what
// users added stays (Kubernetes docs, "Default roles and role bindings").
//
// The server runs Reconcile once, at start. An object whose annotation
// rbac.authorization.kubernetes.io/autoupdate is false is left alone.
package bootstrap
