// Package volume holds the strategies of persistent volumes and of the claims
// by which pods get them.
package volume
