// Package pod holds what is particular to pods: validation, defaults, what may
// change later, how a pod is bound to a node, how it is deleted, and what
// `kubectl get pods` shows of it.
//
// resources.New calls Strategy and NewBinder. The package connects to a node's
// kubelet for logs and streams, and stores nothing except through
// registry.Resource.
package pod
