// Package kubeletclient connects to nodes' kubelets for what only they have: the logs
// of containers, and streams into them.
//
// The pods' subresources call it. It forwards bytes without interpreting them;
// authorization comes before.
package kubeletclient
