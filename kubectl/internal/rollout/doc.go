// Package rollout works out how far the rollout of a deployment, daemon set or
// stateful set is, which revisions of it are recorded, and how to return to
// one. It works on API objects and does no I/O except printing; package command
// calls it.
package rollout
