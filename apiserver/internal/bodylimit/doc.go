// Package bodylimit refuses bodies that would become much larger in memory than on
// the wire, by the number of objects in them and their nesting depth. It
// decodes nothing.
//
// Call it before decoding what clients send. Lengths are bounded where bodies
// are read.
package bodylimit
