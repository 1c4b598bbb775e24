// Package noderuntime is what the node reports about its container runtime, and why that keeps it from
// being ready.
//
// The node manager asks it. It keeps nothing, and changes nothing but the pods' addresses that the
// runtime is told.
package noderuntime
