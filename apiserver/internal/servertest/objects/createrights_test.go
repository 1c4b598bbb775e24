package objects

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// TestCreatesByOtherVerbs: a user who may patch and update, but not create,
// can't create objects by apply or PUT.
func TestCreatesByOtherVerbs(t *testing.T) {
	t.Parallel()
	c := start(t)
	const roles = "/apis/rbac.authorization.k8s.io/v1"
	asJane := func(method, path, media, body string) (int, string) {
		answer, text := c.Ask(method, path, http.Header{"Content-Type": {media}, "Impersonate-User": {"jane"}}, []byte(body))
		return answer.StatusCode, string(text)
	}
	for path, body := range map[string]string{
		"/clusterroles": `{"metadata":{"name":"changer"},"rules":[{"apiGroups":["*"],"resources":["configmaps","leases","clusterroles"],"verbs":["get","update","patch"]},
			{"apiGroups":[""],"resources":["pods/exec","pods/attach","pods/portforward","nodes/proxy"],"verbs":["get"]}]}`,
		"/clusterrolebindings": `{"metadata":{"name":"changer"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"changer"},"subjects":[{"kind":"User","name":"jane","apiGroup":"rbac.authorization.k8s.io"}]}`,
	} {
		if answer, text := c.Ask(http.MethodPost, roles+path, http.Header{"Content-Type": {putIt}}, []byte(body)); answer.StatusCode != http.StatusCreated {
			t.Fatalf("%s: %d %s", path, answer.StatusCode, text)
		}
	}
	c.Until("jane may get config maps", func(context.Context) bool {
		code, _ := asJane(http.MethodGet, "/api/v1/namespaces/default/configmaps/none", putIt, "")
		return code == http.StatusNotFound
	})
	for _, test := range []struct{ method, path, media, body, says string }{
		{"PATCH", "/api/v1/namespaces/default/configmaps/c?fieldManager=x", applyIt, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`,
			`configmaps \"c\" is forbidden: User \"jane\" cannot create resource \"configmaps\" in API group \"\" in the namespace \"default\"`},
		{"PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/l", putIt, `{"metadata":{"name":"l"},"spec":{"leaseDurationSeconds":5}}`,
			`leases.coordination.k8s.io \"l\" is forbidden: User \"jane\" cannot create resource \"leases\"`},
		{"PUT", "/apis/rbac.authorization.k8s.io/v1/clusterroles/r", putIt,
			`{"metadata":{"name":"r"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]}]}`,
			`clusterroles.rbac.authorization.k8s.io \"r\" is forbidden: User \"jane\" cannot create resource \"clusterroles\"`},
	} {
		path, _, _ := strings.Cut(test.path, "?")
		if code, text := asJane(test.method, test.path, test.media, test.body); code != http.StatusForbidden || !strings.Contains(text, test.says) {
			t.Errorf("%s %s: %d %s", test.method, path, code, text)
		}
		// A user who may create can do the same, and then the other one may change
		// the object.
		if answer, text := c.Ask(test.method, test.path, http.Header{"Content-Type": {test.media}}, []byte(test.body)); answer.StatusCode != http.StatusCreated {
			t.Errorf("%s %s by who may: %d %s", test.method, path, answer.StatusCode, text)
		}
		if code, text := asJane(http.MethodPatch, path, merging, `{"metadata":{"labels":{"a":"b"}}}`); code != http.StatusOK {
			t.Errorf("%s is there and not changed: %d %s", path, code, text)
		}
	}
	// Requests into a pod are not reads, although a WebSocket is opened by GET.
	const pods, kubelets = "/api/v1/namespaces/default/pods/none/", "/api/v1/nodes/none/proxy/"
	for path, part := range map[string]string{
		pods + "exec": "pods/exec", pods + "attach": "pods/attach", pods + "portforward": "pods/portforward",
		kubelets + "exec/default/p/c": "nodes/proxy", kubelets + "%61ttach/default/p/c": "nodes/proxy", kubelets + "/portForward/default/p": "nodes/proxy",
		kubelets + "x/../exec/default/p/c": "nodes/proxy", kubelets + "./%2e/attach/default/p/c": "nodes/proxy", kubelets + "exec/../exec/default/p/c": "nodes/proxy",
	} {
		path += "?stdout=1&command=x"
		if code, text := asJane(http.MethodGet, path, putIt, ""); code != http.StatusForbidden || !strings.Contains(text, `cannot create resource \"`+part) {
			t.Errorf("%s: %d %s", path, code, text)
		}
		if answer, text := c.Ask(http.MethodGet, path, nil, nil); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s by who may: %d %s", path, answer.StatusCode, text)
		}
	}
	if code, text := asJane(http.MethodGet, kubelets+"metrics", putIt, ""); code != http.StatusNotFound {
		t.Errorf("a kubelet's metrics: %d %s", code, text)
	}
}
