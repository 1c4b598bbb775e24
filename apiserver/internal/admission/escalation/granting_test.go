package escalation

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/authz/rbac"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

func one(s ...string) []string { return s }

var (
	readPods    = rbacv1.PolicyRule{Verbs: one("get", "list"), APIGroups: one(""), Resources: one("pods")}
	readSecrets = rbacv1.PolicyRule{Verbs: one("get"), APIGroups: one(""), Resources: one("secrets"), ResourceNames: one("key")}
	readPath    = rbacv1.PolicyRule{Verbs: one("get"), NonResourceURLs: one("/metrics")}
)

// grants gives users a role each, named as they are, in all namespaces. jane may read pods, and is
// in a group whose role is missing.
func grants() *rbac.Authorizer {
	policy := rbac.Policy{}
	give := func(user string, rules ...rbacv1.PolicyRule) {
		policy.ClusterRoles = append(policy.ClusterRoles, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules})
		policy.ClusterRoleBindings = append(policy.ClusterRoleBindings, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: user}, Subjects: []rbacv1.Subject{{Kind: "User", Name: user}},
		})
	}
	right := func(verb, resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: one(verb), APIGroups: one(core.Roles.Group), Resources: one(resource), ResourceNames: names}
	}
	give("jane", readPods)
	give("root", allRules...)
	give("escalator", right("escalate", "roles"))
	give("binder", right("bind", "clusterroles", "root"))
	give("role binder", right("bind", "roles"))
	policy.ClusterRoleBindings = append(policy.ClusterRoleBindings, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "dangling"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "gone"},
		Subjects: []rbacv1.Subject{{Kind: "Group", Name: "dev"}},
	})
	policy.Roles = append(policy.Roles, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "secrets"}, Rules: []rbacv1.PolicyRule{readSecrets}})
	rules := rbac.NewAuthorizer()
	rules.Set(policy)
	return rules
}

// TestGranting: who may write which role and which binding, in kube-apiserver's words.
func TestGranting(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "r"}
	role := func(rules ...rbacv1.PolicyRule) core.Object { return &rbacv1.Role{ObjectMeta: meta, Rules: rules} }
	clusterRole := func(aggregates bool, rules ...rbacv1.PolicyRule) core.Object {
		r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: rules}
		if aggregates {
			r.AggregationRule = &rbacv1.AggregationRule{}
		}
		return r
	}
	binding := func(kind, name string) core.Object {
		return &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{Kind: kind, Name: name}}
	}
	clusterBinding := func(name string) core.Object {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "r"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name}}
	}
	changed := func(obj core.Object, change func(core.Object)) core.Object {
		change(obj)
		return obj
	}
	const (
		secrets = "user \"jane\" (groups=[]) is attempting to grant RBAC permissions not currently held:\n" +
			`{APIGroups:[""], Resources:["secrets"], ResourceNames:["key"], Verbs:["get"]}`
		cluster = "must have cluster-admin privileges to use the aggregationRule"
	)
	rules := grants()
	p := Plugin{Rules: rules, Authorizer: rules}
	for name, c := range map[string]struct {
		user     string
		groups   []string
		obj, old core.Object
		want     string // the message behind who and what, "" if it is allowed
	}{
		"what one has": {user: "jane", obj: role(readPods)},
		"part of it": {user: "jane", obj: role(rbacv1.PolicyRule{
			Verbs: one("list"), APIGroups: one(""), Resources: one("pods"), ResourceNames: one("web"),
		})},
		"nothing":        {user: "jane", obj: role()},
		"what one lacks": {user: "jane", obj: role(readPods, readSecrets), want: secrets},
		"all that one lacks, sorted": {
			user: "jane",
			obj: role(readSecrets, readPath,
				rbacv1.PolicyRule{Verbs: one("watch"), APIGroups: one(""), Resources: one("pods")}),
			want: "user \"jane\" (groups=[]) is attempting to grant RBAC permissions not currently held:\n" + `{APIGroups:[""], Resources:["pods"], Verbs:["watch"]}` +
				"\n" + `{APIGroups:[""], Resources:["secrets"], ResourceNames:["key"], Verbs:["get"]}` + "\n" + `{NonResourceURLs:["/metrics"], Verbs:["get"]}`,
		},
		"with a role that is missing": {
			user: "jane", groups: one("dev"), obj: role(readPath),
			want: "user \"jane\" (groups=[\"dev\"]) is attempting to grant RBAC permissions not currently held:\n" +
				`{NonResourceURLs:["/metrics"], Verbs:["get"]}; resolution errors: [clusterroles.rbac.authorization.k8s.io "gone" not found]`,
		},
		"by the right to escalate": {user: "escalator", obj: role(readSecrets)},
		"not the cluster's by that": {
			user: "escalator", obj: clusterRole(false, readSecrets),
			want: "user \"escalator\" (groups=[]) is attempting to grant RBAC permissions not currently held:\n" +
				`{APIGroups:[""], Resources:["secrets"], ResourceNames:["key"], Verbs:["get"]}`,
		},
		"a cluster role":              {user: "jane", obj: clusterRole(false, readPods)},
		"an aggregated one":           {user: "jane", obj: clusterRole(true), want: cluster},
		"one that was aggregated":     {user: "jane", obj: clusterRole(false, readPods), old: clusterRole(true, readPods), want: cluster},
		"one that becomes aggregated": {user: "jane", obj: clusterRole(true, readPods), old: clusterRole(false, readPods), want: cluster},
		"one that never was":          {user: "jane", obj: clusterRole(false, readPods), old: clusterRole(false), want: ""},
		"an aggregated one, by root":  {user: "root", obj: clusterRole(true, readSecrets)},
		"a binding to what one has":   {user: "jane", obj: binding("ClusterRole", "jane")},
		"to what one lacks":           {user: "jane", obj: binding("Role", "secrets"), want: secrets},
		"to a role that is not there": {user: "jane", obj: binding("Role", "nowhere"), want: `rolebindings.rbac.authorization.k8s.io "nowhere" not found`},
		"by the right to bind it":     {user: "binder", obj: binding("ClusterRole", "root")},
		"by it, for the cluster":      {user: "binder", obj: clusterBinding("root")},
		"not another by that": {
			user: "binder", obj: clusterBinding("jane"),
			want: "user \"binder\" (groups=[]) is attempting to grant RBAC permissions not currently held:\n" +
				`{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`,
		},
		"roles, by the right to them": {user: "role binder", obj: binding("Role", "secrets")},
		"not cluster roles by that": {
			user: "role binder", obj: binding("ClusterRole", "jane"),
			want: "user \"role binder\" (groups=[]) is attempting to grant RBAC permissions not currently held:\n" +
				`{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`,
		},
		"by the group of masters": {user: "anyone", groups: one(core.GroupMasters), obj: role(readSecrets)},
		"an update that changes no more than owners and finalizers": {user: "jane", old: role(readSecrets), obj: changed(role(readSecrets), func(o core.Object) {
			o.SetFinalizers(one("f"))
			o.SetOwnerReferences([]metav1.OwnerReference{{Name: "o"}})
			o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m"}})
			o.SetResourceVersion("2")
		})},
		"an update of labels, which may aggregate it": {
			user: "jane", old: role(readSecrets), obj: changed(role(readSecrets), func(o core.Object) { o.SetLabels(map[string]string{"a": "b"}) }),
			want: secrets,
		},
		"another kind": {user: "jane", obj: &core.Namespace{}},
	} {
		a := &admission.Attributes{
			Operation: admission.Create, Resource: resourceOf(c.obj), Namespace: c.obj.GetNamespace(), Name: "r",
			User: &request.User{Username: c.user, Groups: c.groups}, Object: c.obj,
		}
		if c.old != nil {
			a.Operation, a.OldObject = admission.Update, c.old
		}
		got, want := "", c.want
		err := p.Admit(t.Context(), a)
		if err != nil {
			got = err.Error()
		}
		if apierrors.IsForbidden(err) {
			want = a.Resource.Name + `.rbac.authorization.k8s.io "r" is forbidden: ` + want
		}
		if got != want {
			t.Errorf("%s: %q\nwant %q", name, got, want)
		}
	}
}

func resourceOf(obj core.Object) core.Resource {
	switch obj.(type) {
	case *rbacv1.Role:
		return core.Roles
	case *rbacv1.ClusterRole:
		return core.ClusterRoles
	case *rbacv1.RoleBinding:
		return core.RoleBindings
	case *rbacv1.ClusterRoleBinding:
		return core.ClusterRoleBindings
	}
	return core.Namespaces
}

// What the server's own loops write grants nothing on behalf of anybody.
func TestLoopsGrantNothing(t *testing.T) {
	rules := grants()
	a := &admission.Attributes{
		Operation: admission.Create, Resource: core.Roles, Namespace: "shop", Name: "r", Object: &rbacv1.Role{Rules: []rbacv1.PolicyRule{readSecrets}},
	}
	if err := (Plugin{Rules: rules, Authorizer: rules}).Admit(t.Context(), a); err != nil {
		t.Error(err)
	}
	for op, want := range map[admission.Operation]bool{admission.Create: true, admission.Update: true, admission.Delete: false, admission.Connect: false} {
		if got := (Plugin{}).Handles(op); got != want {
			t.Errorf("%s is looked at: %t", op, got)
		}
	}
}
