// Package describe writes what there is to say about an object for people to
// read: kubectl's layout for the kinds that it has one for, a generic one for
// everything else, each with the object's events.
//
// It is handed objects and a time and writes text; it asks no server. Package
// command calls it.
package describe
