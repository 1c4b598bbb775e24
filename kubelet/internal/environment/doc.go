// Package environment builds a container's environment: from the services of its
// namespace, from config maps and secrets, from fields of the pod, and from files that
// its containers wrote (Kubernetes docs, "Define Environment Variables for a
// Container").
//
// Package runtimeconfig calls Sources.Of for each container that is started. It may
// wait for the pod's addresses and for the services, and reads from the API server.
package environment
