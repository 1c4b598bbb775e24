package filters

import (
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/request"
)

// Requests are told in both forms of histogram: who scrapes text reads buckets.
func TestDurationsAreNativeHistogramsToo(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := newRequestMetrics(registry)
	m.duration.WithLabelValues("GET", "", "v1", "pods", "", "resource", "", "apiserver").Observe(0.007)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "apiserver_request_duration_seconds" {
			continue
		}
		h := family.GetMetric()[0].GetHistogram()
		if h.GetSchema() == 0 || len(h.GetPositiveSpan()) == 0 || len(h.GetBucket()) != 21 {
			t.Errorf("schema %d, %d spans, %d buckets", h.GetSchema(), len(h.GetPositiveSpan()), len(h.GetBucket()))
		}
		return
	}
	t.Error("there is no such metric")
}

// TestWhatOthersTookIsNotOurs: a request of five seconds, two of which went to a
// queue and two to webhooks, counts as one of a second.
func TestWhatOthersTookIsNotOurs(t *testing.T) {
	registry, clock := prometheus.NewRegistry(), testingclock.NewFakePassiveClock(start)
	handler := chain(func(c *gin.Context) {
		request.Waited(c.Request.Context(), 2*time.Second)
		request.Waited(c.Request.Context(), 2*time.Second)
		clock.SetTime(start.Add(5 * time.Second))
	}, Observe(registry, clock, zap.NewNop()))
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
