// Package operations_test does what docs/operations.md tells operators to do,
// with its commands: back up and restore, rotate keys, inspect running
// programs.
package operations_test
