// Package trust tells other servers of the cluster how to authenticate whom
// this one authenticates: the ConfigMap extension-apiserver-authentication in
// kube-system has the authorities of client certificates and of proxies, and
// the headers by which proxies name users (Kubernetes docs, "Configure the
// Aggregation Layer").
//
// The server runs it. It holds no secret, and takes away nothing that another
// API server of the cluster has put there, but certificates that have expired.
package trust
