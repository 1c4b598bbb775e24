// Package cri is the kubelet's client to a container runtime: the RuntimeService
// and ImageService of CRI v1 over a unix socket.
//
// Every room of the kubelet that needs the runtime calls it. It gives each call
// its deadline, names the call and its object in every error, and otherwise
// passes on what the runtime says: no caching, no retries, no interpretation.
//
// It works with runtimes as old as containerd 1.6: calls that a runtime lacks
// fail with an error for which IsUnimplemented holds.
package cri
