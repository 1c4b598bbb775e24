// Package kubeconfig finds out which API server a command is for and as whom:
// from the flags, from the files of $KUBECONFIG or ~/.kube/config, and, inside
// a pod, from the service account.
//
// The verbs' rooms (below command) call it. It reads and (for `kctl config`) writes
// kubeconfig files and sends nothing.
package kubeconfig
