package fairness

import (
	"github.com/prometheus/client_golang/prometheus"

	"kctl/proto/daemon"
)

// metrics are upstream's, under upstream's names, so that dashboards carry
// over.
type metrics struct {
	dispatched, rejected, unfit    *prometheus.CounterVec
	running, runningSeats          *prometheus.GaugeVec
	waiting, waitingSeats          *prometheus.GaugeVec
	waited, took, asked, queueSize *prometheus.HistogramVec
	ofLevels                       map[string]*prometheus.GaugeVec
	fairFraction                   prometheus.Gauge
	ratios                         ratioMetrics
}

// levelGauges are the gauges of each level.
var levelGauges = map[string]string{
	"nominal_limit_seats":         "Nominal number of execution seats configured for each priority level",
	"lower_limit_seats":           "Configured lower bound on number of execution seats available to each priority level",
	"upper_limit_seats":           "Configured upper bound on number of execution seats available to each priority level",
	"current_limit_seats":         "current derived number of execution seats available to each priority level",
	"demand_seats_high_watermark": "High watermark, over last adjustment period, of demand_seats",
	"demand_seats_average":        "Time-weighted average, over last adjustment period, of demand_seats",
	"demand_seats_stdev":          "Time-weighted standard deviation, over last adjustment period, of demand_seats",
	"demand_seats_smoothed":       "Smoothed seat demands",
	"target_seats":                "Seat allocation targets",
}

const metricPrefix = "apiserver_flowcontrol_"

func newMetrics(registry prometheus.Registerer) *metrics {
	labels := []string{"flow_schema", "priority_level"}
	counter := func(name, help string, more ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricPrefix + name, Help: help}, append(labels[:2:2], more...))
		registry.MustRegister(v)
		return v
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: metricPrefix + name, Help: help}, labels)
		registry.MustRegister(v)
		return v
	}
	histogram := func(name, help string, buckets []float64, more ...string) *prometheus.HistogramVec {
		v := daemon.NewHistogramVec(prometheus.HistogramOpts{Name: metricPrefix + name, Help: help, Buckets: buckets},
			append(labels[:2:2], more...))
		registry.MustRegister(v)
		return v
	}
	seconds := []float64{0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30}
	m := &metrics{
		dispatched: counter("dispatched_requests_total", "Number of requests executed by API Priority and Fairness subsystem"),
		rejected:   counter("rejected_requests_total", "Number of requests rejected by API Priority and Fairness subsystem", "reason"),
		unfit: counter("request_dispatch_no_accommodation_total",
			"Number of times a dispatch attempt resulted in a non accommodation due to lack of available seats"),
		running: gauge("current_executing_requests",
			"Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution stage in the API Priority and Fairness subsystem",
			labels...),
		runningSeats: gauge("current_executing_seats",
			"Concurrency (number of seats) occupied by the currently executing requests in the API Priority and Fairness subsystem", labels...),
		waiting: gauge("current_inqueue_requests",
			"Number of requests currently pending in queues of the API Priority and Fairness subsystem", labels...),
		waitingSeats: gauge("current_inqueue_seats",
			"Number of seats currently pending in queues of the API Priority and Fairness subsystem", labels...),
		waited: histogram("request_wait_duration_seconds", "Length of time a request spent waiting in its queue", seconds, "execute"),
		took: histogram("request_execution_seconds",
			"Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of request execution in the API Priority and Fairness subsystem",
			seconds, "type"),
		asked: histogram("work_estimated_seats", "Number of estimated seats associated with requests in API Priority and Fairness",
			[]float64{1, 2, 4, 8, 16, 32, 64, 100}),
		queueSize: histogram("request_queue_length_after_enqueue",
			"Length of queue in the API Priority and Fairness subsystem, as seen by each request after it is enqueued",
			[]float64{0, 10, 25, 50, 100, 250, 500, 1000}),
		ofLevels: map[string]*prometheus.GaugeVec{},
		fairFraction: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: metricPrefix + "seat_fair_frac",
			Help: "Fair fraction of server's concurrency to allocate to each priority level that can use it",
		}),
		ratios: newRatioMetrics(registry),
	}
	registry.MustRegister(m.fairFraction)
	for name, help := range levelGauges {
		m.ofLevels[name] = gauge(name, help, "priority_level")
	}
	return m
}

// forgetLevel removes the metrics of a level that is gone.
func (m *metrics) forgetLevel(name string) {
	for _, v := range m.ofLevels {
		v.DeleteLabelValues(name)
	}
	m.ratios.forget(name)
}

// meters are the metrics of one schema and level, looked up once.
type meters struct {
	dispatched, unfit     prometheus.Counter
	rejected              *prometheus.CounterVec
	running, runningSeats prometheus.Gauge
	waiting, waitingSeats prometheus.Gauge
	waited, gaveUp        prometheus.Observer
	took, tookWatch       prometheus.Observer
	asked, queueSize      prometheus.Observer
}

func (m *metrics) of(schema, level string) *meters {
	labels := prometheus.Labels{"flow_schema": schema, "priority_level": level}
	waited, took := m.waited.MustCurryWith(labels), m.took.MustCurryWith(labels)
	return &meters{
		dispatched: m.dispatched.With(labels), unfit: m.unfit.With(labels), rejected: m.rejected.MustCurryWith(labels),
		running: m.running.With(labels), runningSeats: m.runningSeats.With(labels),
		waiting: m.waiting.With(labels), waitingSeats: m.waitingSeats.With(labels),
		waited: waited.WithLabelValues("true"), gaveUp: waited.WithLabelValues("false"),
		took: took.WithLabelValues("regular"), tookWatch: took.WithLabelValues("watch"),
		asked: m.asked.With(labels), queueSize: m.queueSize.With(labels),
	}
}

func (m *metrics) forget(schema, level string) {
	labels := prometheus.Labels{"flow_schema": schema, "priority_level": level}
	m.dispatched.Delete(labels)
	m.unfit.Delete(labels)
	m.rejected.DeletePartialMatch(labels)
	for _, v := range []*prometheus.GaugeVec{m.running, m.runningSeats, m.waiting, m.waitingSeats} {
		v.Delete(labels)
	}
	for _, v := range []*prometheus.HistogramVec{m.waited, m.took, m.asked, m.queueSize} {
		v.DeletePartialMatch(labels)
	}
}
