package rbac

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
)

func rules(verbs, groups, resources []string, names ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{Verbs: verbs, APIGroups: groups, Resources: resources, ResourceNames: names}}
}

func clusterRef(name string) rbacv1.RoleRef { return rbacv1.RoleRef{Kind: "ClusterRole", Name: name} }

// testPolicy has the rules for the requests of TestAuthorize.
func testPolicy() Policy {
	one := func(s ...string) []string { return s }
	clusterRole := func(name string, r []rbacv1.PolicyRule) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: r}
	}
	return Policy{
		ClusterRoles: []*rbacv1.ClusterRole{
			clusterRole("everything", append(rules(one("*"), one("*"), one("*")), rbacv1.PolicyRule{Verbs: one("*"), NonResourceURLs: one("*")})),
			clusterRole("pod-reader", rules(one("get", "list"), one(""), one("pods"))),
			clusterRole("log-reader", rules(one("get"), one(""), one("pods/log"))),
			clusterRole("all-logs", rules(one("get"), one("*"), one("*/log"))),
			clusterRole("one-secret", rules(one("get", "list"), one(""), one("secrets"), "key")),
			clusterRole("paths", []rbacv1.PolicyRule{{Verbs: one("get"), NonResourceURLs: one("/healthz", "/api/*")}}),
		},
		Roles: []*rbacv1.Role{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "creator"}, Rules: rules(one("create"), one(""), one("pods"))}},
		ClusterRoleBindings: []*rbacv1.ClusterRoleBinding{
			{ObjectMeta: metav1.ObjectMeta{Name: "root"}, RoleRef: clusterRef("everything"), Subjects: []rbacv1.Subject{{Kind: "User", Name: "root"}}},
			{ObjectMeta: metav1.ObjectMeta{Name: "devs"}, RoleRef: clusterRef("pod-reader"), Subjects: []rbacv1.Subject{{Kind: "Group", Name: "dev"}}},
			{ObjectMeta: metav1.ObjectMeta{Name: "logs"}, RoleRef: clusterRef("all-logs"), Subjects: []rbacv1.Subject{{Kind: "User", Name: "logger"}}},
			{ObjectMeta: metav1.ObjectMeta{Name: "paths"}, RoleRef: clusterRef("paths"), Subjects: []rbacv1.Subject{{Kind: "Group", Name: "dev"}}},
			{ObjectMeta: metav1.ObjectMeta{Name: "dangling"}, RoleRef: clusterRef("gone"), Subjects: []rbacv1.Subject{{Kind: "Group", Name: "dev"}}},
		},
		RoleBindings: []*rbacv1.RoleBinding{
			{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "creators"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "creator"},
				Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "web"}, {Kind: "ServiceAccount", Namespace: "ops", Name: "robot"}},
			},
			{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "logs"}, RoleRef: clusterRef("log-reader"),
				Subjects: []rbacv1.Subject{{Kind: "User", Name: "jane"}},
			},
			{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "secret"}, RoleRef: clusterRef("one-secret"),
				Subjects: []rbacv1.Subject{{Kind: "User", Name: "jane"}},
			},
		},
	}
}

func TestAuthorize(t *testing.T) {
	root := &request.User{Username: "root"}
	jane := &request.User{Username: "jane", Groups: []string{"dev"}}
	web := &request.User{Username: "system:serviceaccount:shop:web"}
	robot := &request.User{Username: "system:serviceaccount:ops:robot"}
	logger := &request.User{Username: "logger"}
	ask := func(verb, namespace, resource, subresource, name string) request.Info {
		return request.Info{Resource: true, Verb: verb, Namespace: namespace, ResourceName: resource, Subresource: subresource, Name: name}
	}
	other := ask("get", "", "pods", "", "x")
	other.APIGroup = "metrics.k8s.io"
	tests := []struct {
		name string
		user *request.User
		info request.Info
		want bool
	}{
		{"root may all", root, ask("delete", "shop", "secrets", "", "key"), true},
		{"root may any path", root, request.Info{Verb: "get", Path: "/metrics"}, true},
		{"group lists everywhere", jane, ask("list", "", "pods", "", ""), true},
		{"group lists in a namespace", jane, ask("list", "shop", "pods", "", ""), true},
		{"group may not watch", jane, ask("watch", "shop", "pods", "", ""), false},
		{"another API group", jane, other, false},
		{"a rule for pods is not for their logs", jane, ask("get", "ops", "pods", "log", "web"), false},
		{"logs in the binding's namespace", jane, ask("get", "shop", "pods", "log", "web"), true},
		{"logs, named as a resource", jane, ask("get", "shop", "pods/log", "", "web"), true},
		{"every kind's logs, named as a resource", logger, ask("get", "ops", "pods/log", "", "web"), false},
		{"every kind's logs", logger, ask("get", "ops", "pods", "log", "web"), true},
		{"every kind's logs are not the kinds", logger, ask("get", "ops", "pods", "", "web"), false},
		{"the named secret", jane, ask("get", "shop", "secrets", "", "key"), true},
		{"another secret", jane, ask("get", "shop", "secrets", "", "other"), false},
		{"a list names nothing", jane, ask("list", "shop", "secrets", "", ""), false},
		{"service account of the namespace", web, ask("create", "shop", "pods", "", ""), true},
		{"service account of another", robot, ask("create", "shop", "pods", "", ""), true},
		{"a role is for its namespace", web, ask("create", "ops", "pods", "", ""), false},
		{"a role is not for the cluster", web, ask("create", "", "pods", "", ""), false},
		{"a path", jane, request.Info{Verb: "get", Path: "/healthz"}, true},
		{"a path below", jane, request.Info{Verb: "get", Path: "/api/v1"}, true},
		{"a path beside", jane, request.Info{Verb: "get", Path: "/healthz/etcd"}, false},
		{"a path's other verb", jane, request.Info{Verb: "post", Path: "/healthz"}, false},
	}
	a := NewAuthorizer()
	a.Set(testPolicy())
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			decision, reason, err := a.Authorize(t.Context(), &authz.Attributes{User: test.user, Info: test.info})
			want := authz.NoOpinion
			if test.want {
				want = authz.Allow
			}
			if decision != want || err != nil {
				t.Errorf("got %v (%s) %v", decision, reason, err)
			}
			if test.want && reason == "" {
				t.Error("no reason given")
			}
		})
	}
}

func TestEmptyAuthorizerAllowsNothing(t *testing.T) {
	decision, _, _ := NewAuthorizer().Authorize(t.Context(), &authz.Attributes{User: &request.User{Username: "root"}})
	if decision == authz.Allow {
		t.Error("allowed without a policy")
	}
}
