// Package mount is the little of mount(2) that volumes need: tmpfs, bind
// mounts of an open file, and taking away everything that is mounted below a
// pod's directory.
//
// Only package volume and its kinds call it. It makes no directory, and keeps
// no list of its own: the kernel's is the truth, so that a kubelet that starts
// anew finds what the last one mounted.
package mount
