package operation

import (
	"net/http"
	"strings"
	"testing"

	"kctl/apiserver/internal/config"
)

// TestRuntimeConfig: a version that is turned off is not served or listed
// anywhere.
func TestRuntimeConfig(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *config.Options) {
		o.Operation.RuntimeConfig = config.RuntimeConfig{"apps/v1": "false", "authorization.k8s.io/v1": "false", "api/beta": "true"}
	})
	for path, code := range map[string]int{
		"/apis/apps/v1/deployments": 404, "/apis/apps/v1": 404, "/apis/apps": 404, "/openapi/v3/apis/apps/v1": 404,
		"/apis/authorization.k8s.io/v1": 404, "/apis/batch/v1/jobs": 200, "/api/v1/pods": 200, "/apis/authentication.k8s.io/v1": 200,
		"/apis/apiregistration.k8s.io/v1/apiservices/v1.apps": 404,
	} {
		if answer, text := c.Ask(http.MethodGet, path, nil, nil); answer.StatusCode != code {
			t.Errorf("%s: %d, want %d: %.200s", path, answer.StatusCode, code, text)
		}
	}
	if answer, _ := c.Ask(http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", nil, []byte("{}")); answer.StatusCode != http.StatusNotFound {
		t.Errorf("a review that is switched off: %d", answer.StatusCode)
	}
	for path, part := range map[string]string{"/apis": `"name":"apps"`, "/openapi/v2": "/apis/apps/", "/openapi/v3": "apis/apps"} {
		if _, text := c.Ask(http.MethodGet, path, nil, nil); strings.Contains(string(text), part) {
			t.Errorf("%s tells of apps", path)
		}
	}
}
