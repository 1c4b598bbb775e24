// Package event holds what is particular to events: they expire, and can be
// selected by what they are about.
package event
