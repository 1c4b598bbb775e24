package bootstrap

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const aggregateTo = "rbac.authorization.k8s.io/aggregate-to-"

// userRoles are the roles for people: view, edit and admin each collect every
// cluster role that carries their label, so that more can be added to them.
func userRoles() []*rbacv1.ClusterRole {
	return []*rbacv1.ClusterRole{
		(*rbacv1.ClusterRole)(collecting("admin", "admin")),
		collecting("edit", "edit").within("admin"),
		collecting("view", "view").within("edit"),
		part("system:aggregate-to-admin", adminRules()).within("admin"),
		part("system:aggregate-to-edit", editRules()).within("edit"),
		part("system:aggregate-to-view", viewRules()).within("view"),
	}
}

type userRole rbacv1.ClusterRole

func collecting(name, label string) *userRole {
	role := clusterRole(name)
	role.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{aggregateTo + label: "true"}}}}
	return (*userRole)(role)
}

func part(name string, rules []rbacv1.PolicyRule) *userRole {
	return (*userRole)(clusterRole(name, rules...))
}

func (r *userRole) within(label string) *rbacv1.ClusterRole {
	r.Labels[aggregateTo+label] = "true"
	return (*rbacv1.ClusterRole)(r)
}

func adminRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule(authorization, verbs("create"), "localsubjectaccessreviews"),
		rule(rbacGroup, readWrite, "rolebindings", "roles"),
	}
}

func editRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule(coreGroup, read, "pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "secrets", "services/proxy"),
		rule(coreGroup, verbs("impersonate"), "serviceaccounts"),
		rule(coreGroup, write, "pods", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy"),
		rule(coreGroup, verbs("create"), "pods/eviction"),
		rule(coreGroup, write, "configmaps", "events", "persistentvolumeclaims", "replicationcontrollers", "replicationcontrollers/scale", "secrets", "serviceaccounts", "services", "services/proxy"),
		rule(coreGroup, verbs("create"), "serviceaccounts/token"),
		rule("apps", write, "daemonsets", "deployments", "deployments/rollback", "deployments/scale", "replicasets", "replicasets/scale", "statefulsets", "statefulsets/scale"),
		rule("autoscaling", write, "horizontalpodautoscalers"),
		rule("batch", write, "cronjobs", "jobs"),
		rule("networking.k8s.io", write, "ingresses", "networkpolicies"),
		rule("policy", write, "poddisruptionbudgets"),
		rule(coordination, readWrite, "leases"),
	}
}

func viewRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule(coreGroup, read, "configmaps", "endpoints", "persistentvolumeclaims", "persistentvolumeclaims/status", "pods",
			"replicationcontrollers", "replicationcontrollers/scale", "serviceaccounts", "services", "services/status"),
		rule(coreGroup, read, "bindings", "events", "limitranges", "namespaces/status", "pods/log", "pods/status",
			"replicationcontrollers/status", "resourcequotas", "resourcequotas/status"),
		rule(coreGroup, read, "namespaces"),
		rule("discovery.k8s.io", read, "endpointslices"),
		rule("apps", read, "controllerrevisions", "daemonsets", "daemonsets/status", "deployments", "deployments/scale", "deployments/status",
			"replicasets", "replicasets/scale", "replicasets/status", "statefulsets", "statefulsets/scale", "statefulsets/status"),
		rule("autoscaling", read, "horizontalpodautoscalers", "horizontalpodautoscalers/status"),
		rule("batch", read, "cronjobs", "cronjobs/status", "jobs", "jobs/status"),
		rule("networking.k8s.io", read, "ingresses", "ingresses/status", "networkpolicies"),
		rule("policy", read, "poddisruptionbudgets", "poddisruptionbudgets/status"),
	}
}
