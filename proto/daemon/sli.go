package daemon

import (
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// checkResults holds the results of checks, updated at each request for them
// (Kubernetes docs, "Component SLI metrics").
type checkResults struct {
	mu       sync.Mutex
	outcomes map[checkKey]outcome
}

type checkKey struct{ endpoint, name string }

type outcome struct {
	last              float64 // 1 for healthy
	succeeded, failed float64
}

// SLIsPath is where SLIs is served.
const SLIsPath = "/metrics/slis"

// SLIs serves the results of the health checks as metrics.
func (h *Health) SLIs() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(&h.results, NewProcessStart())
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

func (t *checkResults) record(endpoint, name string, healthy bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.outcomes == nil {
		t.outcomes = map[checkKey]outcome{}
	}
	o := t.outcomes[checkKey{endpoint, name}]
	if healthy {
		o.last, o.succeeded = 1, o.succeeded+1
	} else {
		o.last, o.failed = 0, o.failed+1
	}
	t.outcomes[checkKey{endpoint, name}] = o
}

var (
	checkDesc  = prometheus.NewDesc("kubernetes_healthcheck", "What a health check said last, 1 for healthy.", []string{"name", "type"}, nil)
	checksDesc = prometheus.NewDesc("kubernetes_healthchecks_total",
		"How often a health check said what.", []string{"name", "type", "status"}, nil)
)

// Describe implements prometheus.Collector.
func (*checkResults) Describe(descs chan<- *prometheus.Desc) {
	descs <- checkDesc
	descs <- checksDesc
}

// Collect implements prometheus.Collector.
func (t *checkResults) Collect(metrics chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for check, o := range t.outcomes {
		metrics <- prometheus.MustNewConstMetric(checkDesc, prometheus.GaugeValue, o.last, check.name, check.endpoint)
		for status, count := range map[string]float64{"success": o.succeeded, "error": o.failed} {
			if count > 0 {
				metrics <- prometheus.MustNewConstMetric(checksDesc, prometheus.CounterValue, count, check.name, check.endpoint, status)
			}
		}
	}
}
