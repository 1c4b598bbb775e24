package bootstrap

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestPolicy(t *testing.T) {
	p, err := parse(policyText)
	if err != nil {
		t.Fatal(err)
	}
	// As many as upstream's 1.37 server creates.
	if len(p.clusterRoles) != 73 || len(p.clusterRoleBindings) != 54 || len(p.roles) != 7 || len(p.roleBindings) != 7 {
		t.Errorf("%d cluster roles, %d bindings of them, %d roles, %d bindings", len(p.clusterRoles), len(p.clusterRoleBindings), len(p.roles), len(p.roleBindings))
	}
	roles := map[string]*rbacv1.ClusterRole{}
	for _, role := range p.clusterRoles {
		if roles[role.Name] != nil {
			t.Errorf("%s is there twice", role.Name)
		}
		roles[role.Name] = role
		if (len(role.Rules) == 0) != (role.AggregationRule != nil) {
			t.Errorf("%s: %d rules", role.Name, len(role.Rules))
		}
	}
	for _, binding := range p.clusterRoleBindings {
		if roles[binding.RoleRef.Name] == nil {
			t.Errorf("%s binds %s, which is not there", binding.Name, binding.RoleRef.Name)
		}
		if (len(binding.Subjects) == 0) != (binding.Name == "system:node") {
			t.Errorf("%s is for %v", binding.Name, binding.Subjects)
		}
	}
	aggregated := roles["edit"]
	selected := aggregated.AggregationRule.ClusterRoleSelectors[0].MatchLabels
	if aggregated.Labels[aggregationPrefix+"admin"] != "true" || selected[aggregationPrefix+"edit"] != "true" {
		t.Errorf("edit is %+v", aggregated)
	}
	last := roles["system:certificates.k8s.io:kubelet-serving-approver"].Rules
	if len(last) != 1 || last[0].Verbs[0] != "approve" || last[0].ResourceNames[0] != "kubernetes.io/kubelet-serving" {
		t.Errorf("the approver of serving certificates may %+v", last)
	}
	events := roles["system:kube-controller-manager"].Rules[0]
	if !slices.Equal(events.APIGroups, []string{"", "events.k8s.io"}) || !slices.Equal(events.Verbs, []string{"create", "patch", "update"}) {
		t.Errorf("the controller manager may %+v", events)
	}
}

func TestWhatIsNotAPolicy(t *testing.T) {
	for text, want := range map[string]string{
		"  get core pods\n":                         "line 1: a rule of no role",
		"#\nrobot x\n":                              "line 2: words that mean nothing",
		"clusterrole\n":                             "words that mean nothing",
		"clusterrole x to robot:y\n":                `"robot:y" is not a subject`,
		"clusterrole x within\n":                    "words that mean nothing",
		"clusterrole x inside y\n":                  "words that mean nothing",
		"clusterrole x\n  get core\n":               "words that mean nothing",
		"role x to user:y\n":                        "words that mean nothing",
		"role kube-system/x\n":                      "words that mean nothing",
		"role kube-system/x to serviceaccount:ns\n": `"serviceaccount:ns" is not a subject`,
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
