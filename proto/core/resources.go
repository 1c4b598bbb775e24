package core

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is a place in the API: a plural name in a group and version.
type Resource struct {
	Group      string
	Version    string
	Name       string // plural, lower case: "pods"
	Kind       string
	Namespaced bool
}

// The resources that more than one program speaks about.
var (
	Namespaces      = Resource{Version: "v1", Name: "namespaces", Kind: "Namespace"}
	Nodes           = Resource{Version: "v1", Name: "nodes", Kind: "Node"}
	Pods            = Resource{Version: "v1", Name: "pods", Kind: "Pod", Namespaced: true}
	Events          = Resource{Version: "v1", Name: "events", Kind: "Event", Namespaced: true}
	ConfigMaps      = Resource{Version: "v1", Name: "configmaps", Kind: "ConfigMap", Namespaced: true}
	Secrets         = Resource{Version: "v1", Name: "secrets", Kind: "Secret", Namespaced: true}
	PodTemplates    = Resource{Version: "v1", Name: "podtemplates", Kind: "PodTemplate", Namespaced: true}
	Services        = Resource{Version: "v1", Name: "services", Kind: "Service", Namespaced: true}
	Endpoints       = Resource{Version: "v1", Name: "endpoints", Kind: "Endpoints", Namespaced: true}
	ServiceAccounts = Resource{Version: "v1", Name: "serviceaccounts", Kind: "ServiceAccount", Namespaced: true}
	Leases          = Resource{Group: "coordination.k8s.io", Version: "v1", Name: "leases", Kind: "Lease", Namespaced: true}
	Roles           = Resource{Group: "rbac.authorization.k8s.io", Version: "v1", Name: "roles", Kind: "Role", Namespaced: true}
	RoleBindings    = Resource{Group: "rbac.authorization.k8s.io", Version: "v1", Name: "rolebindings", Kind: "RoleBinding", Namespaced: true}
	ClusterRoles    = Resource{Group: "rbac.authorization.k8s.io", Version: "v1", Name: "clusterroles", Kind: "ClusterRole"}
	// ClusterRoleBindings grant in every namespace at once.
	ClusterRoleBindings = Resource{Group: "rbac.authorization.k8s.io", Version: "v1", Name: "clusterrolebindings", Kind: "ClusterRoleBinding"}
	PersistentVolumes   = Resource{Version: "v1", Name: "persistentvolumes", Kind: "PersistentVolume"}
	// PersistentVolumeClaims are how pods get volumes that outlive them.
	PersistentVolumeClaims = Resource{Version: "v1", Name: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", Namespaced: true}
	// RuntimeClasses are the ways in which a node's runtime can run a pod.
	RuntimeClasses = Resource{Group: "node.k8s.io", Version: "v1", Name: "runtimeclasses", Kind: "RuntimeClass"}
	// ClusterTrustBundles are certificates of authorities that pods may trust.
	ClusterTrustBundles = Resource{Group: "certificates.k8s.io", Version: "v1", Name: "clustertrustbundles", Kind: "ClusterTrustBundle"}
	// PriorityClasses are names for how much a pod matters.
	PriorityClasses = Resource{Group: "scheduling.k8s.io", Version: "v1", Name: "priorityclasses", Kind: "PriorityClass"}
	// PodDisruptionBudgets say how many pods of a kind may be missing at once.
	PodDisruptionBudgets = Resource{
		Group: "policy", Version: "v1", Name: "poddisruptionbudgets", Kind: "PodDisruptionBudget", Namespaced: true,
	}
	// EndpointSlices are where a service's traffic goes.
	EndpointSlices = Resource{Group: "discovery.k8s.io", Version: "v1", Name: "endpointslices", Kind: "EndpointSlice", Namespaced: true}
	// IPAddresses are the addresses that services have: one holder each.
	IPAddresses = Resource{Group: "networking.k8s.io", Version: "v1", Name: "ipaddresses", Kind: "IPAddress"}
	// CertificateSigningRequests ask for certificates, and hold those that were
	// issued.
	CertificateSigningRequests = Resource{
		Group: "certificates.k8s.io", Version: "v1", Name: "certificatesigningrequests", Kind: "CertificateSigningRequest",
	}
	TokenReviews  = Resource{Group: "authentication.k8s.io", Version: "v1", Name: "tokenreviews", Kind: "TokenReview"}
	AccessReviews = Resource{Group: "authorization.k8s.io", Version: "v1", Name: "subjectaccessreviews", Kind: "SubjectAccessReview"}
)

// GVK is the group, version and kind of the resource's objects.
func (r Resource) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// GVR is the group, version and plural name of the resource.
func (r Resource) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Name}
}

// Path is the URL path of the collection in namespace, or of the object called
// name in it. An empty namespace means all namespaces; for a resource without
// namespaces it is ignored.
func (r Resource) Path(namespace, name string) string {
	path := "/api/" + r.Version
	if r.Group != "" {
		path = "/apis/" + r.Group + "/" + r.Version
	}
	if r.Namespaced && namespace != "" {
		path += "/namespaces/" + namespace
	}
	path += "/" + r.Name
	if name != "" {
		path += "/" + name
	}
	return path
}
