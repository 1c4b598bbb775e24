// Package event says what is particular about events: they go by themselves
// after a time, and are found by what they are about.
package event
