// Package apps holds what is particular to the kinds that keep pods running:
// deployments, replica sets, stateful sets and daemon sets, and the revisions
// in which the latter two keep their history.
package apps
