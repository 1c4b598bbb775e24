package server

import (
	"net/http/httptest"
	"slices"
	"testing"
)

// Dashboards and alerts name the classes of upstream's kubelet, also where one
// may wonder about them.
func TestRequestsAreInUpstreamsClasses(t *testing.T) {
	for _, c := range []struct{ method, path, wantLong, wantMethod, wantPath string }{
		{"GET", "/metrics", "false", "GET", "metrics"},
		{"GET", "/metrics/cadvisor", "false", "GET", "metrics/cadvisor"},
		{"GET", "/metrics/resource", "false", "GET", "metrics/resource"},
		{"GET", "/metrics/probes", "false", "GET", "metrics/probes"},
		{"GET", "/metrics/slis", "false", "GET", "other"},
		{"GET", "/metrics/", "false", "GET", "other"},
		{"GET", "/pods/", "false", "GET", "pods"},
		{"GET", "/stats/summary", "false", "GET", "stats"},
		{"GET", "/stats/nothing/here", "false", "GET", "stats"},
		{"GET", "/containerLogs/ns/p/c", "false", "GET", "containerLogs"},
		{"POST", "/exec/ns/p/c", "true", "POST", "exec"},
		{"POST", "/attach/ns/p/c", "true", "POST", "attach"},
		{"POST", "/portForward/ns/p", "false", "POST", "portForward"},
		{"GET", "/debug/pprof/profile", "true", "GET", "debug"},
		{"GET", "/", "false", "GET", "other"},
		{"GET", "/nothing", "false", "GET", "other"},
		{"TRACE", "/pods", "false", "TRACE", "pods"},
		{"PATCH", "/pods", "false", "other", "pods"},
	} {
		got := labelsOf(httptest.NewRequest(c.method, c.path, nil))
		if want := []string{c.wantLong, c.wantMethod, c.wantPath}; !slices.Equal(got, want) {
			t.Errorf("%s %s: %q, want %q", c.method, c.path, got, want)
		}
	}
}
