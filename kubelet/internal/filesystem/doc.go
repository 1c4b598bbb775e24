// Package filesystem says how large the file system is that a path is on, and how
// full.
//
// Every room that reports or acts on that asks here, so that all of them mean the
// same by used and available.
package filesystem
