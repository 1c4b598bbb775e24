package validationrules

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kctl/proto/daemon"
)

// The metrics are process-wide, since rules are compiled wherever a schema is.
var (
	compilations = newHistogram("compilation", "How long it took to compile rules of custom resources.")
	evaluations  = newHistogram("evaluation", "How long the rules at a place of a custom resource took.")
)

func newHistogram(of, help string) prometheus.Histogram {
	return daemon.NewHistogram(prometheus.HistogramOpts{
		Name: "apiserver_cel_" + of + "_duration_seconds", Help: help, Buckets: prometheus.DefBuckets,
	})
}

// Metrics are the times that rules take, under upstream's names.
func Metrics() []prometheus.Collector { return []prometheus.Collector{compilations, evaluations} }

func observe(h prometheus.Histogram, since time.Time) { h.Observe(time.Since(since).Seconds()) }
