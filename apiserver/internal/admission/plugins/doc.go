// Package plugins knows every admission plugin by upstream's name, in the
// order in which they run, and builds the chain that the flags ask for.
package plugins
