// Package volume holds what is particular to persistent volumes and to the
// claims by which pods get them.
package volume
