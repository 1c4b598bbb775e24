package bootstrap

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

// Group names, short as in the rules below they stand in every line.
const (
	coreGroup      = ""
	coordination   = "coordination.k8s.io"
	authentication = "authentication.k8s.io"
	authorization  = "authorization.k8s.io"
	certificates   = "certificates.k8s.io"
	eventsGroup    = "events.k8s.io"
	rbacGroup      = rbacv1.GroupName
	storageGroup   = "storage.k8s.io"
	nodeGroup      = "node.k8s.io"
	resourceGroup  = "resource.k8s.io"
)

var (
	read      = []string{"get", "list", "watch"}
	write     = []string{"create", "delete", "deletecollection", "patch", "update"}
	readWrite = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	all       = []string{"*"}
)

func rule(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{group}, Resources: resources}
}

func named(group string, verbs []string, resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names}
}

func paths(urls ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: urls}
}

func verbs(v ...string) []string { return v }

func clusterRole(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: meta("", name), Rules: rules}
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels:      map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"},
		Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"},
	}
}

// ClusterRoles are the cluster roles of every cluster.
func ClusterRoles() []*rbacv1.ClusterRole {
	roles := []*rbacv1.ClusterRole{
		clusterRole("cluster-admin", rule("*", all, "*"), rbacv1.PolicyRule{Verbs: all, NonResourceURLs: all}),
		clusterRole("system:discovery", paths("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version", "/version/")),
		clusterRole("system:public-info-viewer", paths("/healthz", "/livez", "/readyz", "/version", "/version/")),
		clusterRole("system:monitoring", paths("/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/metrics/slis", "/readyz", "/readyz/*")),
		clusterRole("system:basic-user",
			rule(authorization, verbs("create"), "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
			rule(authentication, verbs("create"), "selfsubjectreviews")),
		clusterRole("system:auth-delegator",
			rule(authentication, verbs("create"), "tokenreviews"),
			rule(authorization, verbs("create"), "subjectaccessreviews")),
		clusterRole("system:service-account-issuer-discovery", paths("/.well-known/openid-configuration", "/openid/v1/jwks")),
		clusterRole("system:kubelet-api-admin",
			rule(coreGroup, verbs("get", "list", "watch"), "nodes"),
			rule(coreGroup, verbs("proxy"), "nodes"),
			rule(coreGroup, all, "nodes/configz", "nodes/healthz", "nodes/log", "nodes/metrics", "nodes/pods", "nodes/proxy", "nodes/spec", "nodes/stats")),
		clusterRole("system:node", nodeRules()...),
		clusterRole("system:node-bootstrapper", rule(certificates, verbs("create", "get", "list", "watch"), "certificatesigningrequests")),
		clusterRole("system:node-problem-detector",
			rule(coreGroup, verbs("get"), "nodes"),
			rule(coreGroup, verbs("patch"), "nodes/status"), eventWriter(coreGroup), eventWriter(eventsGroup)),
		clusterRole("system:node-proxier",
			rule(coreGroup, verbs("list", "watch"), "endpoints", "services"),
			rule(coreGroup, read, "nodes"), eventWriter(coreGroup), eventWriter(eventsGroup),
			rule("discovery.k8s.io", verbs("list", "watch"), "endpointslices")),
		clusterRole("system:kube-scheduler", schedulerRules()...),
		clusterRole("system:volume-scheduler",
			rule(coreGroup, verbs("get", "list", "patch", "update", "watch"), "persistentvolumes"),
			rule(storageGroup, read, "storageclasses"),
			rule(coreGroup, verbs("get", "list", "patch", "update", "watch"), "persistentvolumeclaims")),
		clusterRole("system:kube-controller-manager", controllerManagerRules()...),
	}
	return append(roles, userRoles()...)
}

func eventWriter(group string) rbacv1.PolicyRule {
	return rule(group, verbs("create", "patch", "update"), "events")
}

// nodeRules are what a kubelet needs where the Node authorizer, which allows
// each only its own, does not stand.
func nodeRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule(authentication, verbs("create"), "tokenreviews"),
		rule(authorization, verbs("create"), "localsubjectaccessreviews", "subjectaccessreviews"),
		rule(coreGroup, read, "services"),
		rule(coreGroup, verbs("create", "get", "list", "watch"), "nodes"),
		rule(coreGroup, verbs("patch", "update"), "nodes/status"),
		rule(coreGroup, verbs("patch", "update"), "nodes"),
		eventWriter(coreGroup),
		rule(coreGroup, read, "pods"),
		rule(coreGroup, verbs("create", "delete"), "pods"),
		rule(coreGroup, verbs("patch", "update"), "pods/status"),
		rule(coreGroup, verbs("create"), "pods/eviction"),
		rule(coreGroup, read, "configmaps", "secrets"),
		rule(coreGroup, verbs("get"), "persistentvolumeclaims", "persistentvolumes"),
		rule(coreGroup, verbs("get"), "endpoints"),
		rule(certificates, verbs("create", "get", "list", "watch"), "certificatesigningrequests"),
		rule(coordination, verbs("create", "delete", "get", "patch", "update"), "leases"),
		rule(storageGroup, verbs("get"), "volumeattachments"),
		rule(coreGroup, verbs("create"), "serviceaccounts/token"),
		rule(coreGroup, verbs("get"), "serviceaccounts"),
		rule(storageGroup, read, "csidrivers"),
		rule(storageGroup, verbs("create", "delete", "get", "patch", "update"), "csinodes"),
		rule(nodeGroup, read, "runtimeclasses"),
		rule(resourceGroup, verbs("get"), "resourceclaims"),
		rule(resourceGroup, verbs("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"), "resourceslices"),
	}
}

func schedulerRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		eventWriter(coreGroup), eventWriter(eventsGroup),
		rule(coordination, verbs("create", "list", "watch"), "leases"),
		named(coordination, verbs("get", "list", "update", "watch"), "leases", "kube-scheduler"),
		rule(coreGroup, read, "nodes"),
		rule(coreGroup, verbs("delete", "get", "list", "watch"), "pods"),
		rule(coreGroup, verbs("create"), "bindings", "pods/binding"),
		rule(coreGroup, verbs("patch", "update"), "pods/status"),
		rule(coreGroup, read, "replicationcontrollers", "services"),
		rule("apps", read, "replicasets", "statefulsets"),
		rule("policy", read, "poddisruptionbudgets"),
		rule(coreGroup, read, "persistentvolumeclaims", "persistentvolumes"),
		rule(authentication, verbs("create"), "tokenreviews"),
		rule(authorization, verbs("create"), "subjectaccessreviews"),
		rule(storageGroup, read, "csidrivers", "csinodes", "csistoragecapacities", "storageclasses", "volumeattachments"),
		rule(coreGroup, read, "namespaces"),
		rule(resourceGroup, read, "deviceclasses", "resourceclaims", "resourceslices"),
		rule(resourceGroup, verbs("patch", "update"), "resourceclaims", "resourceclaims/binding", "resourceclaims/driver", "resourceclaims/status"),
	}
}

func controllerManagerRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		eventWriter(coreGroup), eventWriter(eventsGroup),
		rule(coordination, verbs("create"), "leases"),
		named(coordination, verbs("get", "update"), "leases", "kube-controller-manager"),
		rule(coreGroup, verbs("create"), "secrets", "serviceaccounts"),
		rule(coreGroup, verbs("delete"), "secrets"),
		rule(coreGroup, verbs("get"), "configmaps", "namespaces", "secrets", "serviceaccounts"),
		rule(coreGroup, verbs("update"), "secrets", "serviceaccounts"),
		rule(authentication, verbs("create"), "tokenreviews"),
		rule(authorization, verbs("create"), "subjectaccessreviews"),
		rule("*", verbs("list", "watch"), "*"),
		rule(coreGroup, verbs("create"), "serviceaccounts/token"),
	}
}

// Roles are the roles of every cluster; their namespace is there by then.
func Roles() []*rbacv1.Role {
	role := func(namespace, name string, rules ...rbacv1.PolicyRule) *rbacv1.Role {
		return &rbacv1.Role{ObjectMeta: meta(namespace, name), Rules: rules}
	}
	return []*rbacv1.Role{
		role(core.NamespaceSystem, "extension-apiserver-authentication-reader",
			named(coreGroup, read, "configmaps", "extension-apiserver-authentication")),
		role(core.NamespaceSystem, "system::leader-locking-kube-scheduler",
			rule(coreGroup, verbs("watch"), "configmaps"),
			named(coreGroup, verbs("get", "update"), "configmaps", "kube-scheduler")),
		role(core.NamespaceSystem, "system::leader-locking-kube-controller-manager",
			rule(coreGroup, verbs("watch"), "configmaps"),
			named(coreGroup, verbs("get", "update"), "configmaps", "kube-controller-manager")),
	}
}
