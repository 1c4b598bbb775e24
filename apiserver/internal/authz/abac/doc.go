// Package abac decides by the lines of a policy file (Kubernetes docs, "Using
// ABAC Authorization"): each line is a policy, and whatever any of them allows
// is allowed.
//
// The authorization chain calls it. The file is read once: a change of it needs
// a restart, as with upstream.
package abac
