// Package describe describes objects for people: in kubectl's layout for the
// kinds that it has one for, in a generic one for everything else, each with
// the object's events.
//
// It is given objects and a time and writes text; it contacts no server.
// The verbs' rooms (below command) call it.
package describe
