package objects

import (
	"net/http"
	"slices"
	"testing"
)

// TestWarningsOfWrites: what is stored all the same, and warned about in upstream's words.
func TestWarningsOfWrites(t *testing.T) {
	t.Parallel()
	c := start(t)
	const (
		core     = "/api/v1/namespaces/default"
		ingress  = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
		slice    = "/apis/resource.k8s.io/v1/resourceslices"
		enforced = `299 - "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"`
		driver   = `299 - "spec.driver: driver names should be lowercase; \"A.b\" contains uppercase characters"`
		annotate = `{"metadata":{"annotations":{"kubernetes.io/enforce-mountable-secrets":"true"}}}`
	)
	for _, step := range []struct {
		method, path, body string
		warns              []string
	}{
		{"POST", core + "/pods", `{"metadata":{"name":"a"},"spec":{"automountServiceAccountToken":false,"nodeName":"n","containers":[{"name":"c","image":"i"}]}}`,
			nil},
		{"PATCH", core + "/pods/a/status",
			`{"status":{"podIP":"2001:DB8::1","podIPs":[{"ip":"2001:DB8::1"}],"hostIP":"2001:db8::2","hostIPs":[{"ip":"2001:db8::2"}]}}`,
			[]string{`299 - "status.podIPs[0].ip: IPv6 address \"2001:DB8::1\" should be in RFC 5952 canonical format (\"2001:db8::1\")"`}},
		{"POST", core + "/services", `{"metadata":{"name":"a"},"spec":{"type":"LoadBalancer","ports":[{"port":80}]}}`, nil},
		{"PATCH", core + "/services/a/status", `{"status":{"loadBalancer":{"ingress":[{"hostname":"a.b"},{"ip":"2001:DB8::1"}]}}}`,
			[]string{`299 - "status.loadBalancer.ingress[1]: IPv6 address \"2001:DB8::1\" should be in RFC 5952 canonical format (\"2001:db8::1\")"`}},
		{"POST", ingress, `{"metadata":{"name":"a"},"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":1}}}}}`, nil},
		{"PATCH", ingress + "/a/status", `{"status":{"loadBalancer":{"ingress":[{"hostname":"a.b"},{"ip":"2001:DB8::1"}]}}}`,
			[]string{`299 - "status.loadBalancer.ingress[1]: IPv6 address \"2001:DB8::1\" should be in RFC 5952 canonical format (\"2001:db8::1\")"`}},
		{"PATCH", core + "/serviceaccounts/default", annotate, []string{enforced}},
		{"PATCH", core + "/serviceaccounts/default", `{"metadata":{"labels":{"a":"b"}}}`, nil},
		{"POST", core + "/resourcequotas",
			`{"metadata":{"name":"a"},"spec":{"hard":{"cpu":"2","limits.cpu":"1","requests.memory":"1Gi","limits.memory":"1Gi","requests.ephemeral-storage":"2","limits.ephemeral-storage":"1"}}}`, []string{
				`299 - "ResourceQuota cpu (2) should be less than limits.cpu (1)"`,
				`299 - "ResourceQuota requests.ephemeral-storage (2) should be less than limits.ephemeral-storage (1)"`,
			}},
		{"POST", slice, `{"metadata":{"name":"a"},"spec":{"driver":"A.b","nodeName":"n","pool":{"name":"p","resourceSliceCount":1}}}`, []string{driver}},
		{"PATCH", slice + "/a", `{"metadata":{"labels":{"a":"b"}}}`, []string{driver}},
	} {
		media := "application/json"
		if step.method == http.MethodPatch {
			media = merging
		}
		answer, text := c.Ask(step.method, step.path, http.Header{"Content-Type": {media}}, []byte(step.body))
		if answer.StatusCode >= 300 || !slices.Equal(answer.Header.Values("Warning"), step.warns) {
			t.Errorf("%s %s: %d %q, want %q: %s", step.method, step.path, answer.StatusCode, answer.Header.Values("Warning"), step.warns, text)
		}
	}
}
