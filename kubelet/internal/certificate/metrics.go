package certificate

import (
	"crypto/x509"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kctl/proto/daemon"
	"kctl/proto/pki"
)

// rotationMetrics are the metrics of one Rotator, under upstream's names.
type rotationMetrics struct {
	failures prometheus.Counter
	// lived is the age of certificates when they were replaced; upstream has it
	// for serving ones only.
	lived prometheus.Histogram
}

// ages are upstream's buckets: from a minute to four years.
var ages = []float64{60, 3600, 14400, 86400, 604800, 2592000, 7776000, 15552000, 31104000, 124416000}

// Register adds the metrics that alerts about certificates use to registry.
func (r *Rotator) Register(registry *prometheus.Registry) {
	ttl, failures := "certificate_manager_client_ttl_seconds", "certificate_manager_client_expiration_renew_errors"
	whose := "client"
	if r.Purpose == Serving {
		ttl, failures, whose = "certificate_manager_server_ttl_seconds", "server_expiration_renew_errors", "serving"
		r.measures.lived = daemon.NewHistogram(prometheus.HistogramOpts{
			Subsystem: "kubelet",
			Name:      "certificate_manager_server_rotation_seconds",
			Buckets:   ages,
			Help:      "Histogram of the number of seconds the previous certificate lived before being rotated.",
		})
		registry.MustRegister(r.measures.lived)
	}
	r.measures.failures = prometheus.NewCounter(prometheus.CounterOpts{
		Subsystem: "kubelet", Name: failures, Help: "Counter of certificate renewal errors.",
	})
	registry.MustRegister(r.measures.failures, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Subsystem: "kubelet", Name: ttl,
		Help: "Gauge of the TTL (time-to-live) of the Kubelet's " + whose +
			" certificate, in seconds: negative if it has expired, +Inf if there is none.",
	}, r.secondsLeft))
}

// secondsLeft is how many seconds the certificate is still valid for.
func (r *Rotator) secondsLeft() float64 {
	leaf, err := r.leaf()
	if err != nil {
		return math.Inf(1)
	}
	return math.Trunc(leaf.NotAfter.Sub(r.Clock.Now()).Seconds())
}

// leaf is the certificate as it is on disk.
func (o Options) leaf() (*x509.Certificate, error) {
	pair, err := pki.Load(o.File(), o.File())
	if err != nil {
		return nil, err
	}
	cert, err := pair.TLS()
	if err != nil {
		return nil, err
	}
	return cert.Leaf, nil
}

func (m *rotationMetrics) failed() {
	if m.failures != nil {
		m.failures.Inc()
	}
}

func (m *rotationMetrics) replaced(lived time.Duration) {
	if m.lived != nil {
		m.lived.Observe(lived.Seconds())
	}
}
