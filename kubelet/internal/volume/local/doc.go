// Package local mounts those of the node's directories that are persistent
// volumes into pods' own directories, and gives them to the pods' group.
//
// Package volume calls it. It never makes or removes anything in them, and does
// not support block devices.
package local
