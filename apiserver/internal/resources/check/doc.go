// Package check holds the field checks that several resources share, with
// upstream's messages, so that users and tools read what they are used to.
//
// Strategies call it from Validate. Nothing here changes what it checks.
package check
