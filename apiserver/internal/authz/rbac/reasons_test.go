package rbac

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
)

// A decision says which binding of which role allows it, in upstream's words, or which roles are
// missing that might have.
func TestReasons(t *testing.T) {
	policy := testPolicy()
	policy.RoleBindings = append(policy.RoleBindings,
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "first"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "nowhere"},
			Subjects: []rbacv1.Subject{{Kind: "User", Name: "jane"}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "second"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "nowhere"},
			Subjects: []rbacv1.Subject{{Kind: "User", Name: "jane"}},
		},
	)
	a := NewAuthorizer()
	a.Set(policy)
	jane := &request.User{Username: "jane", Groups: []string{"dev"}}
	ask := func(verb, namespace, resource string) request.Info {
		return request.Info{Resource: true, Verb: verb, Namespace: namespace, ResourceName: resource, Name: "key"}
	}
	for name, c := range map[string]struct {
		user *request.User
		info request.Info
		want string
	}{
		"a group, by a cluster role binding": {jane, ask("list", "shop", "pods"),
			`RBAC: allowed by ClusterRoleBinding "devs" of ClusterRole "pod-reader" to Group "dev"`},
		"a user, by a role binding": {jane, ask("get", "shop", "secrets"),
			`RBAC: allowed by RoleBinding "secret/shop" of ClusterRole "one-secret" to User "jane"`},
		"a missing role": {jane, ask("delete", "ops", "pods"), `RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found`},
		"several missing roles, each once": {jane, ask("delete", "shop", "pods"),
			`RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, role.rbac.authorization.k8s.io "nowhere" not found]`},
		"a missing role, of the cluster's scope": {jane, ask("delete", "", "nodes"), `RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found`},
		"nothing to say":                         {&request.User{Username: "logger"}, ask("delete", "shop", "pods"), ""},
		"nobody":                                 {nil, ask("get", "shop", "pods"), ""},
	} {
		if _, got, err := a.Authorize(t.Context(), &authz.Attributes{User: c.user, Info: c.info}); got != c.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}

// All rules of a user are listed, and with them which roles are missing; that is no error about
// those that are there.
func TestRulesFor(t *testing.T) {
	a := NewAuthorizer()
	a.Set(testPolicy())
	web := &request.User{Username: "system:serviceaccount:shop:web"}
	jane := &request.User{Username: "jane", Groups: []string{"dev"}}
	for name, c := range map[string]struct {
		user      *request.User
		namespace string
		resources []string
		missing   string
	}{
		"a role of the namespace":  {web, "shop", []string{"pods"}, ""},
		"in another namespace":     {web, "ops", nil, ""},
		"both scopes":              {jane, "shop", []string{"pods", "pods/log", "secrets"}, `clusterroles.rbac.authorization.k8s.io "gone" not found`},
		"the cluster's scope only": {jane, "", []string{"pods"}, `clusterroles.rbac.authorization.k8s.io "gone" not found`},
	} {
		rules, err := a.RulesFor(t.Context(), c.user, c.namespace)
		var resources []string
		for _, rule := range rules {
			resources = append(resources, rule.Resources...)
		}
		if slices.Sort(resources); !slices.Equal(resources, c.resources) {
			t.Errorf("%s: rules about %q, want %q", name, resources, c.resources)
		}
		var missing DanglingRolesError
		if errors.As(err, &missing) != (c.missing != "") || c.missing != "" && missing.Stored() != c.missing {
			t.Errorf("%s: %v, want %q", name, err, c.missing)
		}
	}
	if rules, there := a.RulesOf(rbacv1.RoleRef{Kind: "Role", Name: "creator"}, "shop"); !there || len(rules) != 1 {
		t.Errorf("the role has the rules %v (%t)", rules, there)
	}
	for _, ref := range []rbacv1.RoleRef{{Kind: "Role", Name: "nowhere"}, {Kind: "ClusterRole", Name: "creator"}, {Kind: "Other", Name: "creator"}} {
		if rules, there := a.RulesOf(ref, "shop"); there {
			t.Errorf("%v has the rules %v", ref, rules)
		}
	}
}

// Rules that validation has split are joined again by what they are about.
func TestCompact(t *testing.T) {
	rule := func(verb, group, resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names}
	}
	joined := func(r rbacv1.PolicyRule, verbs ...string) rbacv1.PolicyRule {
		r.Verbs = verbs
		return r
	}
	path := rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz"}}
	split := []rbacv1.PolicyRule{
		rule("get", "", "pods"), path, rule("list", "", "pods"), rule("get", "", "pods"), rule("get", "apps", "pods"),
		rule("get", "", "pods", "one"), rule("delete", "", "pods", "one"), rule("get", "", "secrets"), path,
	}
	want := []rbacv1.PolicyRule{
		joined(rule("get", "", "pods"), "get", "list"), path, rule("get", "apps", "pods"),
		joined(rule("get", "", "pods", "one"), "get", "delete"), rule("get", "", "secrets"), path,
	}
	if got := Compact(split); !reflect.DeepEqual(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	if !reflect.DeepEqual(split[0], rule("get", "", "pods")) {
		t.Errorf("the rules that were given changed: %v", split[0])
	}
}
