// Package cluster brings a whole cluster up on this machine, reports its state,
// and takes it away again: certificates, kubeconfigs, an image registry, a
// containerd of its own with its own network, and the programs as processes.
//
// The commands up, down and status call it. Everything it makes lies under one
// directory, or carries that directory's id in its name, so that clusters don't
// get into each other's way and nothing is left behind.
package cluster
