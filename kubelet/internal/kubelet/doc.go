// Package kubelet creates the rooms of the kubelet, each with those that it needs (kubelet.go,
// machinery.go, workers.go, syncloop.go), and runs their loops (run.go).
//
// The command calls New and Run. It handles nothing that happens to pods: what the sync loop
// routes is handled in package synchandler, the steps of a pod's life are in package lifecycle, and
// everything beyond their order is in the rooms.
package kubelet
