// Package kubelet puts the rooms of the kubelet together and runs them: it builds
// them (kubelet.go, runtime.go, lifecycle.go), runs their loops (run.go), and routes
// what the sync loop hears to them (handlers.go).
//
// The command calls New and Run. What is done with a pod, step by step, is in package
// lifecycle; everything beyond that order is in the rooms.
package kubelet
