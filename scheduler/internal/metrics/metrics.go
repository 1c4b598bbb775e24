package metrics

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"kctl/proto/daemon"
	"kctl/scheduler/framework"
)

const subsystem = "scheduler"

// attemptBuckets are upstream's, preceded by finer ones, where this scheduler
// mostly is.
var attemptBuckets = append([]float64{0.0001, 0.00025, 0.0005}, prometheus.ExponentialBuckets(0.001, 2, 15)...)

// Results of an attempt.
const (
	ResultScheduled     = "scheduled"
	ResultUnschedulable = "unschedulable"
	ResultError         = "error"
)

// Metrics are the scheduler's metrics.
type Metrics struct {
	AlgorithmDuration prometheus.Histogram

	attempts        *prometheus.CounterVec
	attemptDuration *prometheus.HistogramVec
	sliDuration     *prometheus.HistogramVec
	podAttempts     prometheus.Histogram
	incoming        *prometheus.CounterVec
	preemptions     prometheus.Counter
	victims         prometheus.Histogram
	permitWait      *prometheus.HistogramVec
	points          *prometheus.HistogramVec
	plugins         *prometheus.HistogramVec
	pluginPoints    sync.Map // pluginPoint → prometheus.Observer, of plugins
	afterFlush      prometheus.Counter
	*work
}

// New returns metrics to be registered.
func New() *Metrics {
	return &Metrics{
		work: newWork(),
		AlgorithmDuration: daemon.NewHistogram(histogram("scheduling_algorithm_duration_seconds",
			"Scheduling algorithm latency in seconds", attemptBuckets)),
		attempts: counters("schedule_attempts_total",
			"Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be scheduled, while 'error' means an "+
				"internal scheduler problem.",
			"result", "profile"),
		attemptDuration: histograms("scheduling_attempt_duration_seconds",
			"Scheduling attempt latency in seconds (scheduling algorithm + binding)", attemptBuckets, "result", "profile"),
		sliDuration: histograms("pod_scheduling_sli_duration_seconds",
			"E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue",
			append([]float64{0.001, 0.0025, 0.005}, prometheus.ExponentialBuckets(0.01, 2, 20)...), "attempts"),
		podAttempts: daemon.NewHistogram(histogram("pod_scheduling_attempts",
			"Number of attempts to successfully schedule a pod.", prometheus.ExponentialBuckets(1, 2, 5))),
		incoming: counters("queue_incoming_pods_total", "Number of pods added to scheduling queues by event and queue type.", "queue",
			"event"),
		preemptions: prometheus.NewCounter(counter("preemption_attempts_total", "Total preemption attempts in the cluster till now")),
		victims: daemon.NewHistogram(histogram("preemption_victims",
			"Number of selected preemption victims", prometheus.ExponentialBuckets(1, 2, 7))),
		permitWait: histograms("permit_wait_duration_seconds", "Duration of waiting on permit.", prometheus.ExponentialBuckets(0.001, 2, 15),
			"result"),
		points: histograms("framework_extension_point_duration_seconds", "Latency for running all plugins of a specific extension point.",
			prometheus.ExponentialBuckets(0.0001, 2, 12), "extension_point", "status", "profile"),
		plugins: histograms("plugin_execution_duration_seconds", "Duration for running a plugin at a specific extension point.",
			prometheus.ExponentialBuckets(0.00001, 1.5, 20), "plugin", "extension_point", "status"),
		afterFlush: prometheus.NewCounter(counter("pod_scheduled_after_flush_total",
			"Number of pods that were successfully scheduled after being flushed from the unschedulable pods due to timeout.")),
	}
}

func counter(name, help string) prometheus.CounterOpts {
	return prometheus.CounterOpts{Subsystem: subsystem, Name: name, Help: help}
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(counter(name, help), labels)
}

func histogram(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Subsystem: subsystem, Name: name, Help: help, Buckets: buckets}
}

func histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return daemon.NewHistogramVec(histogram(name, help, buckets), labels)
}

func (m *Metrics) all() []prometheus.Collector {
	return []prometheus.Collector{
		m.AlgorithmDuration, m.attempts, m.attemptDuration, m.sliDuration, m.podAttempts, m.incoming, m.preemptions, m.victims,
		m.permitWait, m.points, m.plugins, m.afterFlush, m.entities, m.handled, m.hinted, m.evaluations, m.goroutines,
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(descs chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(descs)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(metrics chan<- prometheus.Metric) {
	for _, c := range m.all() {
		c.Collect(metrics)
	}
}

// Attempt counts an attempt that ended without a binding.
func (m *Metrics) Attempt(result, profile string, took time.Duration) {
	m.attempts.WithLabelValues(result, profile).Inc()
	m.attemptDuration.WithLabelValues(result, profile).Observe(took.Seconds())
}

// maxAttemptsLabel keeps the number of label values small.
const maxAttemptsLabel = 15

// Scheduled counts an attempt that bound its pod, and the pod's whole wait.
func (m *Metrics) Scheduled(profile string, took, waited time.Duration, attempts int) {
	m.Attempt(ResultScheduled, profile, took)
	label := strconv.Itoa(attempts)
	if attempts >= maxAttemptsLabel {
		label = strconv.Itoa(maxAttemptsLabel) + "+"
	}
	m.sliDuration.WithLabelValues(label).Observe(waited.Seconds())
	m.podAttempts.Observe(float64(attempts))
}

// Point measures all plugins of an extension point, together and in one attempt.
func (m *Metrics) Point(point, profile, status string, took time.Duration) {
	m.points.WithLabelValues(point, status, profile).Observe(took.Seconds())
}

// AfterFlush counts a pod that was scheduled though no event had brought it back.
func (m *Metrics) AfterFlush() { m.afterFlush.Inc() }

// Plugins measures single plugins; it implements framework.Observer.
type Plugins struct {
	*Metrics
	Clock clock.PassiveClock
}

// Now implements framework.Observer.
func (p Plugins) Now() time.Time { return p.Clock.Now() }

// Plugin implements framework.Observer.
func (p Plugins) Plugin(plugin, point string, code framework.Code, began time.Time) {
	took := p.Clock.Since(began).Seconds()
	at := pluginPoint{plugin, point, code}
	observer, known := p.pluginPoints.Load(at) // called for each node: finding it by its labels would take longer than the plugin
	if !known {
		observer, _ = p.pluginPoints.LoadOrStore(at, p.plugins.WithLabelValues(plugin, point, code.String()))
	}
	observer.(prometheus.Observer).Observe(took)
}

// pluginPoint is what single plugins are measured by.
type pluginPoint struct {
	plugin, point string
	code          framework.Code
}

// Incoming counts a pod that enters a part of the queue.
func (m *Metrics) Incoming(part, event string) {
	m.incoming.WithLabelValues(part, event).Inc()
	m.entities.WithLabelValues(part, event, "pod").Inc()
}

// Permitted counts a pod that waited for a Permit plugin, and how that ended.
func (m *Metrics) Permitted(result string, waited time.Duration) {
	m.permitWait.WithLabelValues(result).Observe(waited.Seconds())
}

// Preempted counts an attempt to make room, and the pods that have to leave.
func (m *Metrics) Preempted(victims int) {
	m.preemptions.Inc()
	if victims > 0 {
		m.victims.Observe(float64(victims))
	}
}
