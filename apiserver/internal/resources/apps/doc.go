// Package apps says what is particular about the kinds that keep pods running:
// deployments, replica sets, stateful sets and daemon sets, and the revisions
// by which the latter two remember what they were.
package apps
