// Package rbac decides by roles and bindings (Kubernetes docs, "Using RBAC
// Authorization"). It keeps an index of all rules by subject in memory, updated
// from the stores' watches, so that a decision needs no look-up elsewhere.
//
// The authorization chain, rules reviews and the check against privilege
// escalation call it. It writes nothing; package bootstrap stores what every
// cluster starts with.
package rbac
