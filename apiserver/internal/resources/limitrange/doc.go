// Package limitrange says what is particular about limit ranges: what the pods,
// containers and volume claims of a namespace may ask for, and what containers
// that don't ask are given.
package limitrange
