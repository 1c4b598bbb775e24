package bootstrap

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"kctl/proto/core"
)

func group(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: name}
}

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}
}

func clusterRoleRef(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

// ClusterRoleBindings are the cluster role bindings of every cluster.
func ClusterRoleBindings() []*rbacv1.ClusterRoleBinding {
	bind := func(name, role string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: meta("", name), RoleRef: clusterRoleRef(role), Subjects: subjects}
	}
	same := func(role string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
		return bind(role, role, subjects...)
	}
	return []*rbacv1.ClusterRoleBinding{
		same("cluster-admin", group(core.GroupMasters)),
		same("system:monitoring", group("system:monitoring")),
		same("system:discovery", group(core.GroupAuthenticated)),
		same("system:basic-user", group(core.GroupAuthenticated)),
		same("system:public-info-viewer", group(core.GroupAuthenticated), group(core.GroupUnauthenticated)),
		same("system:service-account-issuer-discovery", group(core.GroupServiceAccounts)),
		same("system:node-proxier", user("system:kube-proxy")),
		same("system:kube-scheduler", user(core.UserScheduler)),
		same("system:volume-scheduler", user(core.UserScheduler)),
		same("system:kube-controller-manager", user(core.UserControllerManager)),
		same("system:node"), // for nobody: the Node authorizer knows better
	}
}

// RoleBindings are the role bindings of every cluster.
func RoleBindings() []*rbacv1.RoleBinding {
	bind := func(name, role string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{
			ObjectMeta: meta(core.NamespaceSystem, name), Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		}
	}
	scheduler, controllers := "system::leader-locking-kube-scheduler", "system::leader-locking-kube-controller-manager"
	return []*rbacv1.RoleBinding{
		bind("system::extension-apiserver-authentication-reader", "extension-apiserver-authentication-reader",
			user(core.UserScheduler), user(core.UserControllerManager)),
		bind(scheduler, scheduler, user(core.UserScheduler)),
		bind(controllers, controllers, user(core.UserControllerManager)),
	}
}
