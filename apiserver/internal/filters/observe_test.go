package filters

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
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
