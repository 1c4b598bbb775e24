package discovery

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
)

// TestForms: each document comes in the client's preferred form, the aggregated
// one whenever it is accepted at all, as from kube-apiserver v1.37.0.
func TestForms(t *testing.T) {
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	own := []Resource{resource("", "v1", "pods"), resource("apps", "v1", "deployments")}
	if err := New(own, nil, "192.0.2.1:6443").Install(router); err != nil {
		t.Fatal(err)
	}
	const (
		json, yaml, protobuf = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
		all                  = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
		offered              = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
	)
	for _, c := range []struct {
		path, accept string
		code         int
		media, says  string
	}{
		{"/api", "", 200, json, `"serverAddress":"192.0.2.1:6443"`},
		{"/apis", json + ";pretty=1", 200, json, "\n  \"kind\": \"APIGroupList\""},
		{"/apis?pretty=true", json + ";pretty=0", 200, json, "\n  \"kind\": \"APIGroupList\""},
		{"/apis", yaml + ";q=0.4," + json + ";q=0.3", 200, yaml, "kind: APIGroupList\n"},
		{"/apis", "*/*," + yaml, 200, yaml, "kind: APIGroupList\n"},
		{"/apis/apps", protobuf, 200, protobuf, "k8s\x00\n\x0e\n\x02v1\x12\bAPIGroup"},
		{"/api/v1", protobuf + "," + json, 200, protobuf, "APIResourceList"},
		{"/apis", json + all, 200, json + all, `"kind":"APIGroupDiscoveryList"`},
		{"/apis", json + "," + json + all + ";q=0.1", 200, json + all, `"responseKind":{"group":"","version":"","kind":"deployments"}`},
		{"/apis", json + ";g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList," + json, 200, json, "APIGroupList"},
		{"/api", protobuf + all, 200, protobuf + all, "k8s\x00\n/\n\x16apidiscovery.k8s.io/v2"},
		{"/apis/apps", json + all, 406, json, offered},
		{"/apis", "text/html", 406, json, offered},
		{"/apis", "text/html,*/*;q=0.8", 200, json, "APIGroupList"},
		{"/apis/apps", "application/*", 200, json, "APIGroup"},
		{"/apis/apps/v1", "application/*", 406, json,
			`406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf`},
	} {
		r := httptest.NewRequest(http.MethodGet, c.path, nil)
		if c.accept != "" {
			r.Header.Set("Accept", c.accept)
		}
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		if w.Code != c.code || w.Header().Get("Content-Type") != c.media || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s for %q: %d %s %.300q", c.path, c.accept, w.Code, w.Header().Get("Content-Type"), w.Body)
		}
	}
}
