// Package webhook asks an external service whether a user may do something,
// with a SubjectAccessReview, and caches the answers for a while (Kubernetes
// docs, "Webhook Mode").
//
// The authorization chain calls it. A service that can't be reached has no
// opinion, so that others in the chain may still allow, unless it is configured to
// deny then.
package webhook
