// Package nodes holds the verbs that take nodes out of use and put them back:
// cordon, uncordon, drain and taint.
//
// Only the root of the command line calls it. This machine's own node, with its
// files and processes, belongs to package machine.
package nodes
