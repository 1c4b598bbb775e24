package policy

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kctl/proto/daemon"
)

// failure is a kind of error, in upstream's words.
type failure string

const (
	failureNone    failure = ""
	failureInvalid failure = "invalid_error"
	failureBudget  failure = "out_of_budget"
)

// metrics are upstream's names.
type metrics struct {
	checks   *prometheus.CounterVec
	duration *prometheus.HistogramVec
	actions  bool
}

func newValidatingMetrics(registry prometheus.Registerer) *metrics {
	return newMetrics(registry, "validating_admission_policy", "Validations", "enforcement_action")
}

func newMutatingMetrics(registry prometheus.Registerer) *metrics {
	return newMetrics(registry, "mutating_admission_policy", "Mutations")
}

func newMetrics(registry prometheus.Registerer, subsystem, what string, labels ...string) *metrics {
	labels = append([]string{"policy", "policy_binding", "error_type"}, labels...)
	m := &metrics{
		checks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "apiserver", Subsystem: subsystem, Name: "check_total",
			Help: what + " by admission policies, by policy, binding and what came of them.",
		}, labels),
		duration: daemon.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "apiserver", Subsystem: subsystem, Name: "check_duration_seconds",
			Help:    what + " by admission policies: how long they took, by policy, binding and what came of them.",
			Buckets: []float64{0.0000005, 0.001, 0.01, 0.1, 1},
		}, labels),
		actions: len(labels) > 3,
	}
	registry.MustRegister(m.checks, m.duration)
	return m
}

// observeCheck counts a check; action counts for validations only.
func (m *metrics) observeCheck(policy, binding, action string, f failure, took time.Duration) {
	if f == failureNone {
		f = "no_error"
	}
	labels := []string{policy, binding, string(f)}
	if m.actions {
		labels = append(labels, action)
	}
	m.checks.WithLabelValues(labels...).Inc()
	m.duration.WithLabelValues(labels...).Observe(took.Seconds())
}
