package rbac

import (
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/field"
)

func expect(t *testing.T, what string, errs field.ErrorList, want string) {
	t.Helper()
	got := ""
	if err := errs.ToAggregate(); err != nil {
		got = err.Error()
	}
	if want == "" && got != "" || !strings.HasPrefix(got, want) {
		t.Errorf("%s\n  got: %s\n want: %s", what, got, want)
	}
}

func TestRules(t *testing.T) {
	for text, want := range map[string]string{
		"{verbs: [get], apiGroups: [''], resources: [pods]}":       "",
		"{apiGroups: [''], resources: [pods]}":                     "rules[0].verbs: Required value",
		"{verbs: [get], resources: [pods]}":                        "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
		"{verbs: [get], apiGroups: ['']}":                          "rules[0].resources: Required value: resource rules must supply at least one resource",
		"{verbs: [get], nonResourceURLs: [/x], resources: [pods]}": `rules[0].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both`,
		"{verbs: [get], nonResourceURLs: [/x]}":                    "",
	} {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict([]byte("rules: ["+text+"]"), &role); err != nil {
			t.Fatal(err)
		}
		expect(t, text, validateClusterRole(&role), want)
		if text == "{verbs: [get], nonResourceURLs: [/x]}" {
			expect(t, text+" in a namespace", validateRules(role.Rules, true, field.NewPath("rules")),
				`rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs`)
		}
	}
}

func TestBindings(t *testing.T) {
	strategy := RoleBindings(clock.RealClock{})
	for text, want := range map[string]string{
		"{roleRef: {kind: Role, name: r}, subjects: [{kind: User, name: u}, {kind: ServiceAccount, name: s, namespace: n}]}": "",
		"{roleRef: {kind: Role}}":                                                          "roleRef.name: Required value",
		"{roleRef: {kind: Pod, name: r}}":                                                  `roleRef.kind: Unsupported value: "Pod": supported values: "Role", "ClusterRole"`,
		"{roleRef: {kind: Role, name: r, apiGroup: x}}":                                    `roleRef.apiGroup: Unsupported value: "x"`,
		"{roleRef: {kind: Role, name: r}, subjects: [{kind: Robot, name: u}]}":             `subjects[0].kind: Unsupported value: "Robot"`,
		"{roleRef: {kind: Role, name: r}, subjects: [{kind: User}]}":                       "subjects[0].name: Required value",
		"{roleRef: {kind: Role, name: r}, subjects: [{kind: User, name: u, apiGroup: x}]}": `subjects[0].apiGroup: Unsupported value: "x"`,
	} {
		var b rbacv1.RoleBinding
		if err := yaml.UnmarshalStrict([]byte(text), &b); err != nil {
			t.Fatal(err)
		}
		strategy.Default(&b)
		expect(t, text, strategy.Create.Validate(t.Context(), &b), want)
	}
	old := &rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "a"}}
	now := old.DeepCopy()
	now.RoleRef.Name = "b"
	expect(t, "another role", strategy.Update.Validate(t.Context(), now, old), "roleRef: Invalid value: ")
	cluster := ClusterRoleBindings(clock.RealClock{})
	account := &rbacv1.ClusterRoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "a"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "s"}},
	}
	expect(t, "an account of no namespace", cluster.Create.Validate(t.Context(), account), "subjects[0].namespace: Required value")
}

func TestColumns(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	meta := &metav1.ObjectMeta{Name: "x", CreationTimestamp: metav1.NewTime(now.Add(-time.Minute))}
	cells := bindingRow(meta, rbacv1.RoleRef{Kind: "Role", Name: "r"}, []rbacv1.Subject{
		{Kind: "User", Name: "a"}, {Kind: "User", Name: "b"}, {Kind: "ServiceAccount", Namespace: "n", Name: "s"},
	}, now)
	if got, want := fmt.Sprint(cells), "[x Role/r 60s a, b  n/s]"; got != want {
		t.Errorf("binding: %s, want %s", got, want)
	}
}
