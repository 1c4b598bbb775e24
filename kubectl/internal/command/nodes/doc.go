// Package nodes holds the verbs by which nodes are taken out of use and back into
// it: cordon, uncordon, drain and taint.
//
// Only the root of the command line calls it. The node of this machine, its files
// and processes, is package machine's.
package nodes
