package objects

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRefusalsInFull: refusals have kube-apiserver v1.37.0's words: each
// authorizer's reason, and which permissions were missing when somebody tried
// to grant them.
func TestRefusalsInFull(t *testing.T) {
	t.Parallel()
	c := start(t)
	const rbac = "/apis/rbac.authorization.k8s.io/v1"
	ask := func(as, method, path, body string) string {
		header := http.Header{"Content-Type": {putIt}}
		if as != "" {
			header.Set("Impersonate-User", as)
		}
		if strings.HasPrefix(as, "system:node:") {
			header.Set("Impersonate-Group", "system:nodes")
		}
		_, text := c.Ask(method, path, header, []byte(body))
		var status metav1.Status
		if err := json.Unmarshal(text, &status); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return status.Message
	}
	role := func(name, rules string) string { return `{"metadata":{"name":"` + name + `"},"rules":[` + rules + `]}` }
	binding := func(name, kind, role, subjects string) string {
		return `{"metadata":{"name":"` + name + `"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"` + kind + `","name":"` + role + `"},"subjects":[` +
			subjects + `]}`
	}
	const jane, ann, both = `{"kind":"User","name":"jane"}`, `{"kind":"User","name":"ann"}`, `{"kind":"User","name":"jane"},{"kind":"User","name":"carl"}`
	for _, made := range [][2]string{
		{"/clusterroles",
			role("roler",
				`{"apiGroups":["rbac.authorization.k8s.io"],"resources":["*"],"verbs":["create","update"]},{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]}`)},
		{"/clusterrolebindings", binding("roler", "ClusterRole", "roler", both)},
		{"/clusterrolebindings", binding("dangling", "ClusterRole", "gone", ann+`,{"kind":"User","name":"carl"}`)},
		{"/namespaces/default/rolebindings", binding("dangling", "Role", "lost", ann)},
	} {
		ask("", "POST", rbac+made[0], made[1])
	}
	const notFound = `clusterrole.rbac.authorization.k8s.io "gone" not found`
	c.Until("the rules count", func(context.Context) bool {
		return ask("jane", "POST", rbac+"/clusterroles?dryRun=All", role("x", "")) == "" && strings.Contains(ask("ann", "GET", "/metrics", ""), "gone") &&
			strings.Contains(ask("ann", "GET", "/api/v1/namespaces/default/pods", ""), "lost")
	})
	for _, test := range []struct{ as, method, path, body, says string }{
		{"ann", "GET", "/metrics", "", `forbidden: User "ann" cannot get path "/metrics": rbac: RBAC: ` + notFound},
		{"ann", "GET", "/api/v1/namespaces/default/pods", "",
			`pods is forbidden: User "ann" cannot list resource "pods" in API group "" in the namespace "default": rbac: RBAC: [` + notFound +
				`, role.rbac.authorization.k8s.io "lost" not found]`},
		{"jane", "GET", "/api/v1/nodes", "", `nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope`},
		{"system:node:n1", "GET", "/api/v1/nodes", "",
			`nodes is forbidden: User "system:node:n1" cannot list resource "nodes" in API group "" at the cluster scope: node: node 'n1' cannot read all nodes, only its own Node object`},
		{"system:node:n1", "GET", "/api/v1/nodes/n2", "",
			`nodes "n2" is forbidden: User "system:node:n1" cannot get resource "nodes" in API group "" at the cluster scope: node: node 'n1' cannot read 'n2', only its own Node object`},
		{"system:node:n1", "GET", "/api/v1/namespaces/default/secrets/s", "",
			`secrets "s" is forbidden: User "system:node:n1" cannot get resource "secrets" in API group "" in the namespace "default": node: no relationship found between node 'n1' and this object`},
		{"system:node:n1", "GET", "/api/v1/namespaces/default/secrets", "",
			`secrets is forbidden: User "system:node:n1" cannot list resource "secrets" in API group "" in the namespace "default": node: No Object name found`},
		{"system:node:n1", "GET", "/api/v1/secrets", "",
			`secrets is forbidden: User "system:node:n1" cannot list resource "secrets" in API group "" at the cluster scope: node: can only read namespaced object of this type`},
		{"system:node:n1", "GET", "/api/v1/persistentvolumes", "",
			`persistentvolumes is forbidden: User "system:node:n1" cannot list resource "persistentvolumes" in API group "" at the cluster scope: node: can only get individual resources of this type`},
		{"system:node:n1", "GET", "/api/v1/pods", "",
			`pods is forbidden: User "system:node:n1" cannot list resource "pods" in API group "" at the cluster scope: node: can only list/watch pods with spec.nodeName field selector`},
		{"system:node:n1", "GET", "/apis/resource.k8s.io/v1/resourceslices", "",
			`resourceslices.resource.k8s.io is forbidden: User "system:node:n1" cannot list resource "resourceslices" in API group "resource.k8s.io" at the cluster scope: node: can only list/watch/deletecollection resourceslices with nodeName field selector`},
		{"system:node:n1", "GET", "/apis/storage.k8s.io/v1/csinodes", "",
			`csinodes.storage.k8s.io is forbidden: User "system:node:n1" cannot list resource "csinodes" in API group "storage.k8s.io" at the cluster scope: node: can only get, create, update, patch, or delete a CSINode`},
		{"system:node:n1", "GET", "/apis/coordination.k8s.io/v1/namespaces/default/leases/n1", "",
			`leases.coordination.k8s.io "n1" is forbidden: User "system:node:n1" cannot get resource "leases" in API group "coordination.k8s.io" in the namespace "default": node: can only access leases in the "kube-node-lease" system namespace`},
		{"system:node:n1", "GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n2", "",
			`leases.coordination.k8s.io "n2" is forbidden: User "system:node:n1" cannot get resource "leases" in API group "coordination.k8s.io" in the namespace "kube-node-lease": node: can only access node lease with the same name as the requesting node`},

		{"jane", "POST", rbac + "/clusterroles",
			role("e", `{"apiGroups":[""],"resources":["secrets","pods","configmaps"],"verbs":["get","list"]},{"nonResourceURLs":["/a"],"verbs":["post","get"]}`),
			`clusterroles.rbac.authorization.k8s.io "e" is forbidden: user "jane" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:` +
				"\n" + `{APIGroups:[""], Resources:["configmaps"], Verbs:["list"]}` + "\n" + `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}` + "\n" +
				`{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}` +
				"\n" + `{NonResourceURLs:["/a"], Verbs:["get"]}` + "\n" + `{NonResourceURLs:["/a"], Verbs:["post"]}`},
		{"carl", "POST", rbac + "/clusterroles", role("e", `{"apiGroups":[""],"resources":["secrets"],"resourceNames":["a"],"verbs":["get"]}`),
			`clusterroles.rbac.authorization.k8s.io "e" is forbidden: user "carl" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:` +
				"\n" +
				`{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get"]}; resolution errors: [clusterroles.rbac.authorization.k8s.io "gone" not found]`},
		{"jane", "POST", rbac + "/clusterroles", `{"metadata":{"name":"e"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}}`,
			`clusterroles.rbac.authorization.k8s.io "e" is forbidden: must have cluster-admin privileges to use the aggregationRule`},
		{"jane", "POST", rbac + "/clusterrolebindings", binding("e", "ClusterRole", "gone", jane), `clusterrolebindings.rbac.authorization.k8s.io "gone" not found`},
		{"jane", "PUT", rbac + "/clusterrolebindings/roler", binding("roler", "ClusterRole", "cluster-admin", jane),
			`clusterrolebindings.rbac.authorization.k8s.io "roler" is forbidden: user "jane" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:` +
				"\n" + `{APIGroups:["*"], Resources:["*"], Verbs:["*"]}` + "\n" + `{NonResourceURLs:["*"], Verbs:["*"]}`},
		{"jane", "POST", rbac + "/clusterroles", role("%", `{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}`),
			`clusterroles.rbac.authorization.k8s.io "%" is forbidden: user "jane" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:` +
				"\n" + `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`},
		{"", "PUT", rbac + "/clusterrolebindings/roler", binding("roler", "ClusterRole", "cluster-admin", jane),
			`ClusterRoleBinding.rbac.authorization.k8s.io "roler" is invalid: roleRef: Invalid value: {"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"}: field is immutable`},
		{"", "POST", rbac + "/clusterroles", `{"metadata":{"name":"e"},"rules":[{}]}`,
			`ClusterRole.rbac.authorization.k8s.io "e" is invalid: [rules[0].apiGroups: Required value: resource rules must supply at least one api group, ` +
				`rules[0].resources: Required value: resource rules must supply at least one resource, rules[0].verbs: Required value]`},
	} {
		if said := ask(test.as, test.method, test.path, test.body); said != test.says {
			t.Errorf("%s %s %s:\n     %s\nwant %s", test.as, test.method, test.path, said, test.says)
		}
	}
}
