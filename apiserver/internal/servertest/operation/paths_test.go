package operation

import (
	"context"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

// TestOddPaths: paths with superfluous slashes or parts, and discovery by any method, get
// the answers of kube-apiserver 1.37.
func TestOddPaths(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Ask(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", http.Header{"Content-Type": {"application/json"}}, []byte(`{"metadata":{"name":"widgets.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`))
	c.Until("custom resources to be served", func(context.Context) bool {
		answer, _ := c.Ask(http.MethodGet, "/apis/example.com/v1/widgets", nil, nil)
		return answer.StatusCode == http.StatusOK
	})
	c.AwaitServiceAccount("default")
	c.Created("default", &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{Containers: []core.Container{{Name: "c", Image: "i"}}}})
	const pod = "/api/v1/namespaces/default/pods/web"
	for _, test := range []struct {
		method, path string
		code         int
		says         string // how the answer begins, without blanks
	}{
		{http.MethodGet, "/.well-known/openid-configuration/", 200, `{"`},
		{http.MethodGet, "/openid/v1/jwks/", 200, `{"keys"`},
		{http.MethodGet, "/version///", 200, `{"major"`},
		{http.MethodGet, "/version//x", 404, `{"kind":"Status"`},
		{http.MethodPost, "/version/x", 404, `{"kind":"Status"`},
		{http.MethodPost, "/version/", 405, `{"kind":"Status"`},
		{http.MethodGet, "/openapi/v3/", 404, ""},
		{http.MethodGet, "/openapi/v3/apis/apps/v1/", 404, ""},
		{http.MethodGet, "/debug/pprof?debug=1", 200, "<html><head><title>/debug/pprof/"}, // where it is sent
		{http.MethodPost, "/debug/pprof", 200, "<html><head><title>/debug/pprof/"},
		{http.MethodGet, "/debug/pprof//", 404, ""},
		{http.MethodGet, "//apis/example.com/v1/widgets", 404, "404page"},
		{http.MethodGet, "///apis/example.com/v1/widgets", 404, "404page"},
		{http.MethodGet, "//apis/example.com/v1", 404, "404page"},
		{http.MethodGet, "/apis/example.com/v1/widgets/", 200, `{"kind":"WidgetList"`},
		{http.MethodGet, pod + "/log/x", 404, `{"kind":"Status"`},
		{http.MethodGet, pod + "/exec/x", 404, `{"kind":"Status"`},
		{http.MethodPost, pod + "/attach/x", 404, `{"kind":"Status"`},
		{http.MethodGet, pod + "/portforward/x", 404, `{"kind":"Status"`},
		{http.MethodGet, pod + "/log/", 204, ""},
		{http.MethodGet, pod + "/exec/", 400, `{"kind":"Status"`},
		{http.MethodPost, "/apis", 200, `{"kind":"APIGroupList"`},
		{http.MethodPatch, "/apis/", 200, `{"kind":"APIGroupList"`},
		{http.MethodPut, "/apis/apps", 200, `{"kind":"APIGroup"`},
		{http.MethodOptions, "/apis/apps/", 200, `{"kind":"APIGroup"`},
		{http.MethodDelete, "/apis/example.com", 200, `{"kind":"APIGroup"`},
		{http.MethodPost, "/apis/example.com/v1", 200, `{"kind":"APIResourceList"`},
		{http.MethodPost, "/apis/apps/v1", 405, `{"kind":"Status"`},
		{http.MethodPost, "/api", 405, `{"kind":"Status"`},
	} {
		answer, text := c.Ask(test.method, test.path, nil, nil)
		if says := strings.Join(strings.Fields(string(text)), ""); answer.StatusCode != test.code || !strings.HasPrefix(says, test.says) {
			t.Errorf("%s %s: %d %.200s", test.method, test.path, answer.StatusCode, text)
		}
	}
}
