// Package kubelet reaches the kubelets of nodes for what only they have: the
// logs of containers, and streams into them.
//
// The pods' subresources call it. It forwards bytes and understands none of
// them; whether the user may is decided before.
package kubelet
