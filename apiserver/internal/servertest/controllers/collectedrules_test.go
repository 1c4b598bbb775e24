package controllers

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

// The loop takes back what it wrote, also what an earlier build wrote without being its owner,
// and what users wrote where there is nothing to collect is theirs (as kube-controller-manager
// v1.37.2 has it).
func TestWhoOwnsCollectedRules(t *testing.T) {
	t.Parallel()
	c := start(t)
	roles := c.Root().Resource(core.ClusterRoles, "")
	rule := func(resource string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"get"}}}
	}
	in := map[string]string{"in": "true"}
	of := func(name string, match map[string]string, rules []rbacv1.PolicyRule) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules,
			AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: match}}},
		}
	}
	is := func(name string, rules int, managers string) {
		t.Helper()
		var role rbacv1.ClusterRole
		var got string
		defer func() {
			if t.Failed() {
				t.Logf("%s has %d rules of %s", name, len(role.Rules), got)
			}
		}()
		c.Until("the rules of "+name, func(ctx context.Context) bool {
			role = rbacv1.ClusterRole{}
			if roles.Get(ctx, name, &role) != nil {
				return false
			}
			got = managersOf(&role)
			return len(role.Rules) == rules && got == managers
		})
	}
	const collected = `clusterrole-aggregation-controller Apply "" f:rules, kctl Update "" f:aggregationRule`

	part := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "part", Labels: in}, Rules: rule("pods")}
	c.Must(roles.Create(t.Context(), part, nil))
	c.Must(roles.Create(t.Context(), of("users", map[string]string{"in": "none"}, rule("secrets")), nil))
	for _, name := range []string{"all", "earlier"} {
		c.Must(roles.Create(t.Context(), of(name, in, nil), nil))
		is(name, 1, collected)
	}

	// As an earlier build has left a role that a user had created with "rules: []".
	c.Must(roles.Patch(t.Context(), "earlier", "application/merge-patch+json", []byte(`{"metadata": {"managedFields": [{
		"manager": "kctl", "operation": "Update", "apiVersion": "rbac.authorization.k8s.io/v1", "time": "2026-01-01T00:00:00Z",
		"fieldsType": "FieldsV1", "fieldsV1": {"f:aggregationRule": {}, "f:rules": {}}
	}]}}`), nil))
	is("earlier", 1, collected)

	c.Must(roles.Patch(t.Context(), "part", "application/merge-patch+json", []byte(`{"metadata": {"labels": null}}`), nil))
	for _, name := range []string{"all", "earlier"} {
		is(name, 0, `kctl Update "" f:aggregationRule`)
	}
	is("users", 1, `kctl Update "" f:aggregationRule f:rules`)
}
