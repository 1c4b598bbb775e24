// Package kubelet creates and runs the rooms of the kubelet: it creates them
// (kubelet.go, runtime.go, lifecycle.go), runs their loops (run.go), and routes the
// sync loop's events to them (handlers.go).
//
// The command calls New and Run. The steps of a pod's life are in package lifecycle;
// everything beyond their order is in the rooms.
package kubelet
