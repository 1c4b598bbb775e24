package filters

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/request"
)

// TestWhatOthersTookIsNotOurs: a request of five seconds, two of which went to
// a queue and two to webhooks, counts as one second.
func TestWhatOthersTookIsNotOurs(t *testing.T) {
	registry, clock := prometheus.NewRegistry(), testingclock.NewFakePassiveClock(start)
	handler := chain(func(c *gin.Context) {
		request.Spent(c.Request.Context(), request.Queue, 2*time.Second)
		request.Spent(c.Request.Context(), request.Queue, 2*time.Second)
		clock.SetTime(start.Add(5 * time.Second))
	}, Observe(registry, clock, noneServed, zap.NewNop()))
	serve(handler, "GET", "/version")
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, family := range families {
		if strings.HasSuffix(family.GetName(), "_duration_seconds") {
			sums[family.GetName()] = family.GetMetric()[0].GetHistogram().GetSampleSum()
		}
	}
	if sums["apiserver_request_duration_seconds"] != 5 || sums["apiserver_request_sli_duration_seconds"] != 1 {
		t.Errorf("the request took %v", sums)
	}
	if problems, err := testutil.GatherAndLint(registry, "apiserver_request_sli_duration_seconds"); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}

// noneServed: nothing is served but what has a route.
func noneServed(*request.Info) bool { return false }

// TestWhatIsToldOfRequests: served custom resources appear by name; upstream's
// metrics about response sizes, deprecated versions and requests ended by the
// server.
func TestWhatIsToldOfRequests(t *testing.T) {
	registry := prometheus.NewRegistry()
	served := func(info *request.Info) bool { return info.ResourceName == "widgets" }
	handler := chain(func(c *gin.Context) {
		switch ctx := c.Request.Context(); c.Query("case") {
		case "old":
			request.NoteDeprecated(ctx)
		case "full":
			request.NoteTerminated(ctx)
			c.Status(http.StatusTooManyRequests)
			return
		}
		c.String(http.StatusOK, "12345")
	}, Observe(registry, testingclock.NewFakePassiveClock(start), served, zap.NewNop()))
	const widgets = "/apis/example.com/v1/widgets"
	serve(handler, "GET", widgets+"?case=old")
	serve(handler, "GET", widgets+"?case=full")
	serve(handler, "DELETE", widgets)
	serve(handler, "PATCH", "/apis/example.com/v1/namespaces/a/widgets/w?dryRun=All", "Content-Type", "application/apply-patch+yaml")
	serve(handler, "GET", "/apis/example.com/v1/gadgets")
	for metric, want := range map[string]string{
		"apiserver_request_total": `
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="",scope="",subresource="",verb="LIST",version=""} 1
apiserver_request_total{code="200",component="apiserver",dry_run="",group="example.com",resource="widgets",scope="cluster",subresource="",verb="DELETE",version="v1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="",group="example.com",resource="widgets",scope="cluster",subresource="",verb="LIST",version="v1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="All",group="example.com",resource="widgets",scope="resource",subresource="",verb="APPLY",version="v1"} 1
apiserver_request_total{code="429",component="apiserver",dry_run="",group="example.com",resource="widgets",scope="cluster",subresource="",verb="LIST",version="v1"} 1
`,
		"apiserver_requested_deprecated_apis": `
apiserver_requested_deprecated_apis{group="example.com",removed_release="",resource="widgets",subresource="",version="v1"} 1
`,
		"apiserver_request_terminations_total": `
apiserver_request_terminations_total{code="429",component="apiserver",group="example.com",resource="widgets",scope="cluster",subresource="",verb="LIST",version="v1"} 1
`,
	} {
		if got := samples(t, registry, metric); got != want[1:] {
			t.Errorf("%s:\n%s", metric, got)
		}
	}
	if got := samples(t, registry, "apiserver_response_sizes_sum"); got != `apiserver_response_sizes_sum{component="apiserver",group="example.com",resource="widgets",scope="cluster",subresource="",verb="LIST",version="v1"} 5
` {
		t.Errorf("sizes:\n%s", got)
	}
	if got := samples(t, registry, "apiserver_request_sli_duration_seconds_count"); strings.Contains(got, "APPLY") {
		t.Errorf("a dry run has no part in what clients are promised:\n%s", got)
	}
}

// TestPathsAreCountedAsKubeAPIServerDoes: those that it counts have its labels, all
// others are one class.
func TestPathsAreCountedAsKubeAPIServerDoes(t *testing.T) {
	registry := prometheus.NewRegistry()
	handler := chain(func(c *gin.Context) { c.String(http.StatusOK, "12345") },
		Observe(registry, testingclock.NewFakePassiveClock(start), noneServed, zap.NewNop()))
	for _, path := range []string{
		"/readyz", "/livez", "/healthz", "/livez/ping", "/api", "/apis/", "/apis/apps/v1", "/openapi/v2",
		"/openapi/v3", "/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1", "/version", "/metrics", "/nothing/here",
	} {
		serve(handler, "GET", path)
	}
	const sizes = `apiserver_response_sizes_count{component="",group="",resource="",scope="",subresource="/healthz",verb="GET",version=""} 1
apiserver_response_sizes_count{component="",group="",resource="",scope="",subresource="/livez",verb="GET",version=""} 1
apiserver_response_sizes_count{component="",group="",resource="",scope="",subresource="/readyz",verb="GET",version=""} 1
apiserver_response_sizes_count{component="",group="",resource="",scope="",subresource="openapi/v3",verb="GET",version=""} 1
apiserver_response_sizes_count{component="",group="",resource="",scope="",subresource="openapi/v3/",verb="GET",version=""} 2
apiserver_response_sizes_count{component="apiserver",group="",resource="",scope="",subresource="api",verb="GET",version=""} 1
apiserver_response_sizes_count{component="apiserver",group="",resource="",scope="",subresource="apis",verb="GET",version=""} 1
`
	if got := samples(t, registry, "apiserver_response_sizes_count"); got != sizes {
		t.Errorf("sizes:\n%s", got)
	}
	const others = `{code="200",component="apiserver",dry_run="",group="",resource="",scope="",subresource="",verb="GET",version=""} 6`
	if got := samples(t, registry, "apiserver_request_total"); !strings.Contains(got, others) || strings.Count(got, "\n") != 8 {
		t.Errorf("requests:\n%s", got)
	}
}

// TestLongRequestsAreTimed: a watch is, when it ends, but it has no part in what
// clients are promised.
func TestLongRequestsAreTimed(t *testing.T) {
	registry := prometheus.NewRegistry()
	served := func(*request.Info) bool { return true }
	handler := chain(func(c *gin.Context) { c.Status(http.StatusOK) }, Observe(registry, testingclock.NewFakePassiveClock(start), served, zap.NewNop()))
	serve(handler, "GET", "/api/v1/pods?watch=true")
	const want = `apiserver_request_duration_seconds_count{component="apiserver",dry_run="",group="",resource="pods",scope="cluster",subresource="",verb="WATCH",version="v1"} 1
`
	if got := samples(t, registry, "apiserver_request_duration_seconds_count"); got != want {
		t.Errorf("durations:\n%s", got)
	}
	if got := samples(t, registry, "apiserver_request_sli_duration_seconds_count"); got != "" {
		t.Errorf("promised:\n%s", got)
	}
}

// samples are a metric's lines as they are scraped.
func samples(t *testing.T, registry *prometheus.Registry, metric string) string {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	var lines strings.Builder
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, metric+"{") {
			lines.WriteString(line)
		}
	}
	return lines.String()
}
