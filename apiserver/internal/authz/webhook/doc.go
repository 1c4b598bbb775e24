// Package webhook asks a service outside the cluster whether a user may do
// something, by a SubjectAccessReview, and remembers the answers for a while
// (Kubernetes docs, "Webhook Mode").
//
// The authorization chain calls it. A service that can't be asked has no
// opinion, so that others in the chain may still allow, unless it is configured to
// deny then.
package webhook
