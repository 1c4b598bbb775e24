package filters

import (
	"github.com/prometheus/client_golang/prometheus"

	"kctl/proto/daemon"
)

// newDurations returns upstream's histogram of how long a check of requests takes, by
// its result.
func newDurations(check, help string, registry prometheus.Registerer) *prometheus.HistogramVec {
	durations := daemon.NewHistogramVec(prometheus.HistogramOpts{
		Name: check + "_duration_seconds", Help: help, Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
	}, []string{"result"})
	registry.MustRegister(durations)
	return durations
}
