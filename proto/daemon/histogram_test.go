package daemon_test

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"kctl/proto/daemon"
)

// TestHistogramsHaveBothForms: a native histogram for scrapers of protobuf, and
// for others the buckets that were asked for, or the usual ones.
func TestHistogramsHaveBothForms(t *testing.T) {
	registry := prometheus.NewRegistry()
	opts := prometheus.HistogramOpts{Name: "a_seconds", Buckets: []float64{1, 2}}
	one := daemon.NewHistogram(opts)
	opts.Name = "b_seconds"
	labelled := daemon.NewHistogramVec(opts, []string{"verb"})
	usual := daemon.NewHistogram(prometheus.HistogramOpts{Name: "c_seconds"})
	registry.MustRegister(one, labelled, usual)
	one.Observe(1.5)
	usual.Observe(1.5)
	labelled.WithLabelValues("GET").Observe(1.5)

	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	buckets := map[string]int{"a_seconds": 2, "b_seconds": 2, "c_seconds": len(prometheus.DefBuckets)}
	for _, family := range families {
		names = append(names, family.GetName())
		h := family.GetMetric()[0].GetHistogram()
		// Schema 3: eight buckets for each power of two.
		if h.GetSchema() != 3 || len(h.GetPositiveSpan()) == 0 || len(h.GetBucket()) != buckets[family.GetName()] {
			t.Errorf("%s: schema %d, spans %v, buckets %v", family.GetName(), h.GetSchema(), h.GetPositiveSpan(), h.GetBucket())
		}
	}
	if !slices.Equal(names, []string{"a_seconds", "b_seconds", "c_seconds"}) {
		t.Errorf("there are %v", names)
	}
}
