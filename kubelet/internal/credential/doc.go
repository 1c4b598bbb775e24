// Package credential finds the credentials for image registries: from a pod's
// pull secrets, from the node's own Docker configuration, and from plugins that
// are asked for an image (Kubernetes docs, "Images", "Configure a kubelet image
// credential provider").
//
// Package image asks it before it pulls. It pulls nothing, and keeps the plugins'
// answers only in memory, for as long as they allow.
package credential
