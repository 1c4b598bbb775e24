// Package projected makes the content of volumes that bring several sources
// into one directory, service account tokens among them.
//
// Package volume calls it. It writes nothing.
package projected
