package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// work measures what is done beside attempts, and how often plugins are asked.
type work struct {
	entities    *prometheus.CounterVec
	handled     *prometheus.HistogramVec
	hinted      *prometheus.HistogramVec
	evaluations *prometheus.CounterVec
	goroutines  *prometheus.GaugeVec
	// Binding counts the goroutines that bind pods.
	Binding prometheus.Gauge
}

func newWork() *work {
	w := &work{
		entities: counters("queue_incoming_entities_total",
			"Number of pods added to scheduling queues by event and queue type; what is queued is always a pod.", "queue", "event", "type"),
		handled: histograms("event_handling_duration_seconds", "Event handling latency in seconds.", prometheus.ExponentialBuckets(0.0001, 2, 12),
			"event"),
		hinted: histograms("queueing_hint_execution_duration_seconds",
			"Duration for running a queueing hint function of a plugin, of one in a hundred.",
			prometheus.ExponentialBuckets(0.00001, 2, 12), "plugin", "event", "hint"),
		evaluations: counters("plugin_evaluation_total",
			"Number of attempts to schedule pods by each plugin and the extension point (available only in PreFilter, Filter, PreScore, and Score).",
			"plugin", "extension_point", "profile"),
		goroutines: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Subsystem: subsystem,
			Name:      "goroutines",
			Help:      "Number of running goroutines split by the work they do such as binding.",
		}, []string{"operation"}),
	}
	w.Binding = w.goroutines.WithLabelValues("binding")
	return w
}

// Handled measures an event that may have helped pods.
func (w *work) Handled(event string, took time.Duration) {
	w.handled.WithLabelValues(event).Observe(took.Seconds())
}

// Hinted measures a plugin's hint.
func (w *work) Hinted(plugin, event string, helps bool, took time.Duration) {
	hint := "QueueSkip"
	if helps {
		hint = "Queue"
	}
	w.hinted.WithLabelValues(plugin, event, hint).Observe(took.Seconds())
}

// Evaluations are a profile's counters of the attempts in which its plugins were
// asked. They belong to the goroutine of the cycle.
type Evaluations struct {
	of     *prometheus.CounterVec
	points map[string]map[string]prometheus.Counter // by point and plugin
}

// EvaluationsOf returns the counters of a profile.
func (w *work) EvaluationsOf(profile string) *Evaluations {
	return &Evaluations{
		of:     w.evaluations.MustCurryWith(prometheus.Labels{"profile": profile}),
		points: map[string]map[string]prometheus.Counter{"PreFilter": {}, "Filter": {}, "PreScore": {}, "Score": {}},
	}
}

// Count counts an attempt in which a plugin was asked at one of the four points.
func (e *Evaluations) Count(point, plugin string) {
	counter := e.points[point][plugin] // finding it by its labels would take ten times as long
	if counter == nil {
		counter = e.of.WithLabelValues(plugin, point)
		e.points[point][plugin] = counter
	}
	counter.Inc()
}
