package access

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// TestDifference: rules are compared by what they permit, not by how they are
// written.
func TestDifference(t *testing.T) {
	role := func(rules string) string { return "{kind: Role, metadata: {name: r}, rules: [" + rules + "]}" }
	binding := func(role, subjects string) string {
		return "{kind: RoleBinding, metadata: {name: b}, roleRef: {name: " + role + "}, subjects: [" + subjects + "]}"
	}
	const pods = `{apiGroups: [""], resources: [pods, pods/log], verbs: [get, list]}`
	for name, c := range map[string]struct {
		have, wanted string
		remove       bool
		want         string // the lines, joined
	}{
		"is not there": {"", role(`{apiGroups: [""], resources: [pods], verbs: [get]}`), false,
			"create|missing rules added:|{Verbs:[get] APIGroups:[] Resources:[pods] ResourceNames:[] NonResourceURLs:[]}"},
		"is the same": {role(pods), role(pods), true, ""},
		"gives more":  {role(pods), role(`{apiGroups: [""], resources: [pods], verbs: [get]}`), false, ""},
		"gives all":   {role(`{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}`), role(pods), false, ""},
		"any subresource": {role(`{apiGroups: [""], resources: ["*/log"], verbs: [get]}`), role(`{apiGroups: [""], resources: [pods/log], verbs: [get]}`), false,
			""},
		"one name only": {role(`{apiGroups: [""], resources: [pods], resourceNames: [a], verbs: [get]}`),
			role(`{apiGroups: [""], resources: [pods], verbs: [get]}`), false,
			"update|missing rules added:|{Verbs:[get] APIGroups:[] Resources:[pods] ResourceNames:[] NonResourceURLs:[]}"},
		"below an address": {"{kind: ClusterRole, rules: [{nonResourceURLs: [/x/*], verbs: [get]}]}",
			"{kind: ClusterRole, rules: [{nonResourceURLs: [/x/y, /z], verbs: [get]}]}", false,
			"update|missing rules added:|{Verbs:[get] APIGroups:[] Resources:[] ResourceNames:[] NonResourceURLs:[/z]}"},
		"loses what is not": {role(pods), role(`{apiGroups: [""], resources: [pods, pods/log], verbs: [get]}`), true,
			"update|extra rules removed:|{Verbs:[list] APIGroups:[] Resources:[pods] ResourceNames:[] NonResourceURLs:[]}|{Verbs:[list] APIGroups:[] " +
				"Resources:[pods/log] ResourceNames:[] NonResourceURLs:[]}"},
		"a label": {"{kind: Role, metadata: {labels: {a: b}}}", "{kind: Role, metadata: {labels: {a: c}}}", false, "update"},
		"is left alone": {`{kind: Role, metadata: {annotations: {rbac.authorization.kubernetes.io/autoupdate: "false"}}}`,
			"{kind: Role, metadata: {labels: {a: c}}}", false, "update, but object opted out (rbac.authorization.kubernetes.io/autoupdate: false)"},
		"another role": {binding("r", ""), binding("s", "{kind: User, name: a}"), true, "recreate"},
		"another subject": {binding("r", "{kind: User, name: a}"), binding("r", "{kind: User, name: b}"), false,
			"update|missing subjects added:|{Kind:User APIGroup: Name:b Namespace:}"},
		"fewer subjects": {binding("r", "{kind: User, name: a}"), binding("r", ""), true, "update|extra subjects removed:|{Kind:User APIGroup: Name:a Namespace:}"},
		"a selector": {"{kind: ClusterRole, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}}",
			"{kind: ClusterRole, aggregationRule: {clusterRoleSelectors: [{matchLabels: {c: d}}]}}", false, "update"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := computeDifference(object(t, c.have), object(t, c.wanted), removeOptions{c.remove, c.remove})
			if err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(strings.Join(d.lines(), "|"), "\t", "")
			if got = strings.TrimPrefix(got, "reconciliation required "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
