package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kctl/kubelet/internal/probe"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

// ProbeMetrics are those of /metrics/probes: they are of each container, and are
// asked for by themselves.
type ProbeMetrics struct {
	Registry *prometheus.Registry
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newProbeMetrics() *ProbeMetrics {
	p := &ProbeMetrics{
		Registry: prometheus.NewRegistry(),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "prober_probe_total", Help: "Cumulative number of a liveness, readiness or startup probe for a container by result.",
		}, []string{"probe_type", "result", "container", "pod", "namespace", "pod_uid"}),
		duration: daemon.NewHistogramVec(prometheus.HistogramOpts{
			Name: "prober_probe_duration_seconds", Help: "Duration in seconds for a probe response.", Buckets: prometheus.DefBuckets,
		}, []string{"probe_type", "container", "pod", "namespace"}),
	}
	p.Registry.MustRegister(p.total, p.duration, daemon.NewProcessStart())
	return p
}

// Observe takes an answer to a probe, or that there was none.
func (p *ProbeMetrics) Observe(pod *core.Pod, container string, kind probe.Kind, result string, took time.Duration) {
	p.total.WithLabelValues(kind.String(), result, container, pod.Name, pod.Namespace, string(pod.UID)).Inc()
	if result != "unknown" {
		p.duration.WithLabelValues(kind.String(), container, pod.Name, pod.Namespace).Observe(took.Seconds())
	}
}

// Forget removes the metrics of a pod that is no longer probed.
func (p *ProbeMetrics) Forget(pod *core.Pod) {
	p.total.DeletePartialMatch(prometheus.Labels{"pod_uid": string(pod.UID)})
	p.duration.DeletePartialMatch(prometheus.Labels{"pod": pod.Name, "namespace": pod.Namespace})
}
