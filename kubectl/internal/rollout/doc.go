// Package rollout reads how far the rollout of a deployment, daemon set or
// stateful set is, which revisions are remembered of it, and what brings one of
// them back. It works on objects as the API tells them and does no I/O but
// writing what it is asked to print; package command calls it.
package rollout
