// Package kubelet puts the rooms of the kubelet together and runs them: it
// builds them (kubelet.go), routes what the sync loop hears to them
// (handlers.go), and holds the scripts of a pod's life (sync.go,
// terminate.go) that say in which order a pod passes through them.
//
// The command calls New and Run. Everything beyond this order is in the rooms.
package kubelet
