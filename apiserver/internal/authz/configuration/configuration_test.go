package configuration

import (
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var allTypes = []string{"ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"}

const header = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n"

// webhook is a valid webhook, with more.
func webhook(more string) string {
	return "- type: Webhook\n  name: w\n  webhook: {timeout: 3s, subjectAccessReviewVersion: v1, " +
		"matchConditionSubjectAccessReviewVersion: v1, failurePolicy: Deny, " +
		"connectionInfo: {type: KubeConfigFile, kubeConfigFile: /k}" + more + "}\n"
}

// TestRefusals: kube-apiserver v1.37.0's messages for such files.
func TestRefusals(t *testing.T) {
	for name, test := range map[string]struct{ content, want string }{
		"empty": {header + "authorizers: []\n", "authorizers: Required value: at least one authorization mode must be defined"},
		"unknown field": {header + "authorizers:\n- {type: RBAC, name: r, foo: 1}\n",
			`failed to load AuthorizationConfiguration from file: strict decoding error: unknown field "authorizers[0].foo"`},
		"unknown type": {header + "authorizers:\n- {type: Foo, name: r}\n",
			`authorizers[0].type: Unsupported value: "Foo": supported values: "ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"`},
		"twice": {header + "authorizers:\n- {type: RBAC, name: r}\n- {type: RBAC, name: r2}\n- {type: Node, name: r}\n",
			`[authorizers[1].type: Duplicate value: "RBAC", authorizers[2].name: Duplicate value: "r"]`},
		"no name": {header + "authorizers:\n- {type: RBAC}\n- {type: Webhook, name: x}\n",
			`[authorizers[0].name: Required value, authorizers[1].webhook: Required value: required when type=Webhook]`},
		"nothing said": {header + "authorizers:\n- {type: Webhook, name: x, webhook: {}}\n",
			"[authorizers[0].timeout: Required value, authorizers[0].subjectAccessReviewVersion: Required value, authorizers[0].failurePolicy: Required value, " +
				"authorizers[0].connectionInfo.type: Required value]"},
		"nonsense": {header +
			"authorizers:\n- type: Webhook\n  name: x\n  webhook: {authorizedTTL: -1s, unauthorizedTTL: -30s, timeout: 31s, subjectAccessReviewVersion: v2, " +
			"matchConditionSubjectAccessReviewVersion: v2, failurePolicy: Foo, connectionInfo: {type: KubeConfigFile, kubeConfigFile: relative}}\n",
			`[authorizers[0].timeout: Invalid value: "31s": must be > 0s and <= 30s, authorizers[0].authorizedTTL: Invalid value: "-1s": must be > 0s, authorizers[0].unauthorizedTTL: Invalid value: "-30s": must be > 0s, ` +
				`authorizers[0].subjectAccessReviewVersion: Unsupported value: "v2": supported values: "v1", "v1beta1", authorizers[0].matchConditionSubjectAccessReviewVersion: Unsupported value: "v2": supported values: "v1", ` +
				`authorizers[0].failurePolicy: Unsupported value: "Foo": supported values: "NoOpinion", "Deny", authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "relative": must be an absolute path]`},
		"conditions": {header + "authorizers:\n" +
			webhook(", matchConditions: [{expression: ''}, {expression: 'foo'}, {expression: 'request.user'}, {expression: 'true'}, {expression: 'true'}, "+
				"{expression: 'request.resourceAttributes.fieldSelector.requirements.exists(x, x.key == \"a\")'}]"),
			"[authorizers[0].matchConditions[0].expression: Required value, authorizers[0].matchConditions[1].expression: Invalid value: \"foo\": compilation failed: " +
				"ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n" +
				" | foo\n | ^, authorizers[0].matchConditions[2].expression: Invalid value: \"request.user\": must evaluate to bool but got string, " +
				"authorizers[0].matchConditions[4].expression: Duplicate value: \"true\"]"},
		"in the cluster": {header +
			"authorizers:\n- {type: Webhook, name: x, webhook: {timeout: 1s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: " +
			"{type: InClusterConfig}}}\n",
			`authorizers[0].connectionInfo.type: Invalid value: "InClusterConfig": is not supported by this server: name a file by KubeConfigFile`},
		"another version": {"apiVersion: apiserver.config.k8s.io/v9\nkind: AuthorizationConfiguration\n",
			`must be of kind AuthorizationConfiguration of apiserver.config.k8s.io/v1 or v1beta1 or v1alpha1`},
		"twice the field": {header + "authorizers: []\nauthorizers: []\n", `"authorizers" already set`},
		"no YAML":         {"{", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(test.content), allTypes)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v\nwant %s", err, test.want)
			}
		})
	}
}

func TestVersions(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		text := "apiVersion: apiserver.config.k8s.io/" + version + "\nkind: AuthorizationConfiguration\nauthorizers:\n- {type: RBAC, name: r}\n"
		if read, err := Parse([]byte(text), allTypes); err != nil || len(read) != 1 {
			t.Errorf("%s: %+v %v", version, read, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	read, err := Parse([]byte(header+"authorizers:\n"+webhook(", cacheUnauthorizedRequests: false")+"- {type: RBAC, name: r}\n"), allTypes)
	if err != nil {
		t.Fatal(err)
	}
	if w := read[0].Webhook; w.AuthorizedTTL.Duration != 5*time.Minute || w.UnauthorizedTTL.Duration != 0 || read[0].Conditions != nil || read[1].Type != "RBAC" {
		t.Errorf("%+v", read)
	}
}

// TestMatch: one false condition decides, whatever errors others have.
func TestMatch(t *testing.T) {
	pods := &authorizationv1.SubjectAccessReviewSpec{
		User: "jane", Groups: []string{"dev"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: "shop", Verb: "list", Resource: "pods",
			LabelSelector: &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{{
				Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"a"},
			}}},
		},
	}
	path := &authorizationv1.SubjectAccessReviewSpec{User: "root", NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/x", Verb: "get"}}
	for _, test := range []struct {
		conditions  string
		spec        *authorizationv1.SubjectAccessReviewSpec
		want, fails bool
	}{
		{`has(request.resourceAttributes)`, pods, true, false},
		{`has(request.resourceAttributes)`, path, false, false},
		{`request.resourceAttributes.labelSelector.requirements.exists(r, r.key == "app" && r.operator == "In" && "a" in r.values)`, pods, true, false},
		{`has(request.resourceAttributes.fieldSelector)`, pods, false, false},
		{`request.resourceAttributes.namespace == "shop"`, pods, true, false},
		{`request.resourceAttributes.namespace == "shop"`, path, false, true},
		{`request.resourceAttributes.subresource == "" && request.uid == ""`, pods, true, false},
		{`"dev" in request.groups && request.user == "jane"`, pods, true, false},
		{`"dev" in request.groups`, path, false, false},
		{`request.nonResourceAttributes.path.startsWith("/x")`, path, true, false},
		{`request.extra["a"] == ["b"]'}, {expression: 'false`, pods, false, false},
	} {
		read, err := Parse([]byte(header+"authorizers:\n"+webhook(", matchConditions: [{expression: '"+test.conditions+"'}]")), allTypes)
		if err != nil {
			t.Fatal(err)
		}
		got, err := read[0].Conditions.Match(t.Context(), test.spec)
		if got != test.want || (err != nil) != test.fails {
			t.Errorf("%s for %s: %v %v", test.conditions, test.spec.User, got, err)
		}
	}
}
