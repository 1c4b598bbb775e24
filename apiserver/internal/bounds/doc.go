// Package bounds refuses bodies that would become much more in memory than they
// are on the wire: by the number of objects in them, and by how deep these are
// in each other. It decodes nothing.
//
// Whoever decodes what clients send asks it first. Lengths are bounded where
// bodies are read.
package bounds
