package webhook

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kctl/proto/daemon"
)

// Metrics are upstream's metrics of authorization webhooks, for all of them.
type Metrics struct {
	requests, failOpen, conditionExclusions, conditionErrors *prometheus.CounterVec
	duration                                                 *prometheus.HistogramVec
}

// NewMetrics registers them.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "apiserver", Subsystem: "authorization", Name: name, Help: help,
		}, labels)
	}
	m := &Metrics{
		requests: counter("webhook_evaluations_total",
			"Questions to authorization webhooks, by name and result: success, canceled, timeout or error.", "name", "result"),
		failOpen: counter("webhook_evaluations_fail_open_total",
			"Questions that were passed on to the next authorizer because they got no answer, by name and result: timeout or error.",
			"name", "result"),
		conditionExclusions: counter("match_condition_exclusions_total",
			"Requests that match conditions kept from authorization webhooks, by type and name.", "type", "name"),
		conditionErrors: counter("match_condition_evaluation_errors_total",
			"Requests for which match conditions of authorization webhooks could not be told, by type and name.", "type", "name"),
		duration: daemon.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "apiserver", Subsystem: "authorization", Name: "webhook_duration_seconds",
			Help: "How long authorization webhooks took, by name and result.",
		}, []string{"name", "result"}),
	}
	registry.MustRegister(m.requests, m.failOpen, m.conditionExclusions, m.conditionErrors, m.duration)
	return m
}

// observeRequest counts a question that ended with err after a duration.
func (a *Authorizer) observeRequest(err error, after time.Duration) {
	m, result := a.options.Metrics, "success"
	switch {
	case m == nil:
		return
	case errors.Is(err, context.Canceled):
		result = "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		result = "timeout"
	case err != nil:
		result = "error"
	}
	m.requests.WithLabelValues(a.options.Name, result).Inc()
	m.duration.WithLabelValues(a.options.Name, result).Observe(after.Seconds())
	if err != nil && result != "canceled" && !a.options.FailClosed {
		m.failOpen.WithLabelValues(a.options.Name, result).Inc()
	}
}

// observeExclusion counts a request that was not sent to the webhook, because
// the match conditions exclude it or, with an error, could not be evaluated.
func (a *Authorizer) observeExclusion(err error) {
	m := a.options.Metrics
	if m == nil {
		return
	}
	of := m.conditionExclusions
	if err != nil {
		of = m.conditionErrors
	}
	of.WithLabelValues("Webhook", a.options.Name).Inc()
}
