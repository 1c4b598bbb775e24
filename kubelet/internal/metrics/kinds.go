package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"kctl/proto/daemon"
)

// The kubelet's own metrics, each kind made in one way.

const subsystem = "kubelet"

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Subsystem: subsystem, Name: name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Subsystem: subsystem, Name: name, Help: help}, labels)
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Subsystem: subsystem, Name: name, Help: help})
}

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Subsystem: subsystem, Name: name, Help: help}, labels)
}

// All buckets are upstream's: quantiles over the kubelets of a cluster, some of them
// upstream's, are those of nothing if their buckets differ.

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return daemon.NewHistogram(prometheus.HistogramOpts{Subsystem: subsystem, Name: name, Help: help, Buckets: buckets})
}

func histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return daemon.NewHistogramVec(prometheus.HistogramOpts{Subsystem: subsystem, Name: name, Help: help, Buckets: buckets}, labels)
}
