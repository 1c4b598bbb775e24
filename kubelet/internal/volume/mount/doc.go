// Package mount is the part of mount(2) that volumes need: tmpfs, bind mounts
// of an open file, and unmounting everything below a pod's directory.
//
// Only package volume and its kinds call it. It makes no directories, and keeps
// no list of its own: only the kernel's counts, so that a restarted kubelet
// finds what the last one mounted.
package mount
