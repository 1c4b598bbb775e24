// Package explain explains for one pod what each node answers to it: every
// plugin that refuses the node, or the scores that rank it.
//
// The port that serves metrics calls it, at any time and beside the cycle: it
// asks the same plugins about a snapshot of its own, and changes nothing.
package explain
