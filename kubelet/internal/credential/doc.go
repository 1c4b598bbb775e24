// Package credential knows whom image registries know us as: by a pod's pull
// secrets, by the node's own Docker configuration, and by what plugins say that
// are asked for an image (Kubernetes docs, "Images", "Configure a kubelet image
// credential provider").
//
// The image room asks it before it pulls. It pulls nothing, and keeps what plugins
// say in memory only, for as long as they allow.
package credential
