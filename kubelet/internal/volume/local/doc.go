// Package local makes the directories of the node that are persistent volumes
// appear in pods' own directories, and gives them to the pods' group.
//
// Package volume calls it. It never makes or removes anything in what is mounted,
// and knows no block devices.
package local
