// Package volume says what is particular about persistent volumes and about
// the claims by which pods get them.
package volume
