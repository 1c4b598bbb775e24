// Package oomwatcher tells of processes that the kernel ended because the whole machine
// was out of memory. It reads the kernel's log (/dev/kmsg), from where it ends when the
// kubelet starts.
//
// It says nothing of containers that were at their own limit: that is in their status. It
// believes only the kernel, not what programs write into its log.
package oomwatcher
