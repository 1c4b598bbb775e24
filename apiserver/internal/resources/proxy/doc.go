// Package proxy passes requests on to what pods, services and nodes serve:
// pods/proxy, services/proxy and nodes/proxy (Kubernetes docs, "Access
// Services Running on Clusters").
//
// The set of resources installs its subresources; whether the user may is
// decided before. It never follows a redirect, never passes on who the user is,
// and reaches no address of the server's own host or link unless a node is
// there.
package proxy
