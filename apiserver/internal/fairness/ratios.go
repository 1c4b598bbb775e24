package fairness

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/prometheusextension"
)

// ratioMetrics are upstream's histograms over time: each nanosecond counts as
// an observation of how much of a level was used in it.
type ratioMetrics struct {
	requests, seats, demand *prometheusextension.TimingHistogramVec
}

func newRatioMetrics(registry prometheus.Registerer) ratioMetrics {
	histogram := func(name, help string, constant prometheus.Labels, buckets []float64,
		labels ...string) *prometheusextension.TimingHistogramVec {
		v := prometheusextension.NewTimingHistogramVec(prometheusextension.TimingHistogramOpts{
			Name: metricPrefix + name, Help: "Observations, at the end of every nanosecond, of " + help, ConstLabels: constant, Buckets: buckets,
		}, labels...)
		registry.MustRegister(v)
		return v
	}
	return ratioMetrics{
		requests: histogram("priority_level_request_utilization",
			"number of requests (as a fraction of the relevant limit) waiting or in any stage of execution (but only initial stage for WATCHes)",
			nil, []float64{0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1}, "phase", "priority_level"),
		seats: histogram("priority_level_seat_utilization",
			"utilization of seats for any stage of execution (but only initial stage for WATCHes)",
			prometheus.Labels{"phase": "executing"}, []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1}, "priority_level"),
		demand: histogram("demand_seats", "(the number of seats each priority level could use) / (nominal number of seats for that level)",
			nil, []float64{0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.7, 2, 2.8, 4, 6}, "priority_level"),
	}
}

func (m ratioMetrics) of(level string) ratios {
	return ratios{
		waiting: m.requests.WithLabelValues("waiting", level), executing: m.requests.WithLabelValues("executing", level),
		seats: m.seats.WithLabelValues(level), demand: m.demand.WithLabelValues(level), whole: 1,
	}
}

func (m ratioMetrics) forget(level string) {
	for _, phase := range []string{"waiting", "executing"} {
		m.requests.DeleteLabelValues(phase, level)
	}
	m.seats.DeleteLabelValues(level)
	m.demand.DeleteLabelValues(level)
}

// ratios are the histograms of one level, under its lock.
type ratios struct {
	waiting, executing, seats, demand prometheusextension.GaugeOps
	// whole are the seats that the level has. For one that has none, whose use is
	// no ratio, it is what upstream takes: a tenth of the server's.
	whole int
}

// note records that from now on the level is used as q says.
func (r *ratios) note(q *queues) {
	room := max(1, q.lengthLimit) * max(1, len(q.all))
	whole := float64(r.whole)
	r.waiting.Set(float64(q.waiting) / float64(room))
	r.executing.Set(float64(q.running) / whole)
	r.seats.Set(float64(q.inUse) / whole)
	r.demand.Set(float64(q.inUse+q.waitingSeats) / whole)
}
