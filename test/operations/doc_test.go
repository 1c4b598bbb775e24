// Package operations_test does what docs/operations.md tells operators to do, by
// its commands: back up and restore, rotate keys, look into running programs.
package operations_test
