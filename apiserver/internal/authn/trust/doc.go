// Package trust publishes to the cluster's other servers how this one
// authenticates: the ConfigMap extension-apiserver-authentication in
// kube-system holds the authorities of client certificates and of proxies, and
// the headers in which proxies name users (Kubernetes docs, "Configure the
// Aggregation Layer").
//
// The server runs it. It holds no secret, and removes nothing that another API
// server of the cluster has added, except expired certificates.
package trust
