// Package podactions decides what to do next for a pod that shall run: from its
// spec, what the runtime has of it, and a few facts, Compute makes the Actions that
// bring it one step nearer to its spec. It is the only place that knows when a
// container is started, held back, resized, ended or begun anew.
//
// actions.go has the decision and the regular containers, initcontainers.go what
// comes before them, restart.go and restartall.go the policies and rules by which
// containers that ended run again, and resize.go which running ones are to change.
//
// All of it are functions of what they are given: nothing here waits, asks the
// runtime, or remembers. Package podruntime does what is decided here; package
// status asks the same rules for a pod's phase.
package podactions
