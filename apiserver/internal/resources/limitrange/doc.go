// Package limitrange holds what is particular to limit ranges: what the pods,
// containers and volume claims of a namespace may request, and the defaults of
// containers.
package limitrange
