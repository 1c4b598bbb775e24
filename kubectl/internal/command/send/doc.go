// Package send is how verbs change objects on the server: the flags they share
// (--dry-run, --field-manager, --validate, --save-config), the create, the patch,
// and the create of what a generator made.
//
// The rooms whose verbs change something call it. It decides nothing about what
// is changed.
package send
