package core

// Annotations by which a kubelet marks which source a pod came from, and ties a
// static pod to its mirror pod in the API (Kubernetes docs, "Well-Known Labels,
// Annotations and Taints").
const (
	ConfigSourceAnnotation = "kubernetes.io/config.source"
	ConfigHashAnnotation   = "kubernetes.io/config.hash"
	ConfigSeenAnnotation   = "kubernetes.io/config.seen"
	ConfigMirrorAnnotation = "kubernetes.io/config.mirror"
)

// Namespaces that exist in every cluster.
const (
	NamespaceDefault   = "default"
	NamespaceSystem    = "kube-system"
	NamespacePublic    = "kube-public"
	NamespaceNodeLease = "kube-node-lease"
)

// Users and groups with a meaning of their own.
const (
	UserAnonymous         = "system:anonymous"
	UserAPIServer         = "system:apiserver" // a server, for what it asks of itself
	UserScheduler         = "system:kube-scheduler"
	UserControllerManager = "system:kube-controller-manager"
	UserNodePrefix        = "system:node:"
	GroupNodes            = "system:nodes"
	GroupMasters          = "system:masters"
	GroupBootstrappers    = "system:bootstrappers" // who shows a bootstrap token
	GroupMonitoring       = "system:monitoring"
	GroupAuthenticated    = "system:authenticated"
	GroupUnauthenticated  = "system:unauthenticated"
	ServiceAccountPrefix  = "system:serviceaccount:"
	GroupServiceAccounts  = "system:serviceaccounts"
)

// DefaultSchedulerName is the scheduler of pods that name none.
const DefaultSchedulerName = "default-scheduler"

// SystemCriticalPriority is the lowest priority of pods that a cluster cannot do
// without (Kubernetes docs, "Pod Priority and Preemption").
const SystemCriticalPriority = 2_000_000_000

// RootCAConfigMap is the ConfigMap in every namespace by which pods come to
// trust the API server (key ca.crt).
const RootCAConfigMap = "kube-root-ca.crt"
