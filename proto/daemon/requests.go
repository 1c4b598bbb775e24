package daemon

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Requests are the metrics of a program's requests to the API server, under the
// names of client-go's (Kubernetes docs, "Kubernetes Metrics Reference",
// rest_client_*). It implements rest.Meter.
type Requests struct {
	answered, retried        *prometheus.CounterVec
	duration, sent, received *prometheus.HistogramVec
}

// NewRequests returns metrics, to be given to a client and registered.
func NewRequests() *Requests {
	const subsystem = "rest_client"
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Subsystem: subsystem, Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return NewHistogramVec(prometheus.HistogramOpts{Subsystem: subsystem, Name: name, Help: help, Buckets: buckets}, []string{"verb", "host"})
	}
	sizes := []float64{64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216}
	return &Requests{
		answered: counter("requests_total", "Number of HTTP requests, partitioned by status code, method, and host.", "code", "method", "host"),
		retried: counter("request_retries_total", "Number of request retries, partitioned by status code, verb, and host.",
			"code", "verb", "host"),
		duration: histogram("request_duration_seconds", "Request latency in seconds. Broken down by verb, and host.",
			[]float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60}),
		sent:     histogram("request_size_bytes", "Request size in bytes. Broken down by verb and host.", sizes),
		received: histogram("response_size_bytes", "Response size in bytes. Broken down by verb and host.", sizes),
	}
}

// Answered implements rest.Meter.
func (r *Requests) Answered(method, host string, code int) {
	r.answered.WithLabelValues(codeLabel(code), method, host).Inc()
}

// Called implements rest.Meter.
func (r *Requests) Called(method, host string, took time.Duration, sent int) {
	r.duration.WithLabelValues(method, host).Observe(took.Seconds())
	r.sent.WithLabelValues(method, host).Observe(float64(sent))
}

// Received implements rest.Meter.
func (r *Requests) Received(method, host string, bytes int) {
	r.received.WithLabelValues(method, host).Observe(float64(bytes))
}

// Retried implements rest.Meter.
func (r *Requests) Retried(method, host string, code int) {
	r.retried.WithLabelValues(codeLabel(code), method, host).Inc()
}

// codeLabel is client-go's word for a code.
func codeLabel(code int) string {
	if code == 0 {
		return "<error>"
	}
	return strconv.Itoa(code)
}

func (r *Requests) all() []prometheus.Collector {
	return []prometheus.Collector{r.answered, r.retried, r.duration, r.sent, r.received}
}

// Describe implements prometheus.Collector.
func (r *Requests) Describe(descs chan<- *prometheus.Desc) {
	for _, c := range r.all() {
		c.Describe(descs)
	}
}

// Collect implements prometheus.Collector.
func (r *Requests) Collect(metrics chan<- prometheus.Metric) {
	for _, c := range r.all() {
		c.Collect(metrics)
	}
}
