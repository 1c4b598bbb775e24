// Package pod says what is particular about pods: everything a pod may say,
// what is filled in where it says nothing, what may change later, how it is
// bound to a node, how it is deleted, and what `kubectl get pods` shows of it.
//
// New's caller is resources.New. The package reaches a node's kubelet for
// logs and streams and stores nothing except through registry.Resource.
package pod
