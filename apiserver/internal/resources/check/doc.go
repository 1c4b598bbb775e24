// Package check holds the field checks that several resources share, with
// upstream's messages, which users and tools know.
//
// Strategies call it from Validate. Nothing here changes what it checks.
package check
