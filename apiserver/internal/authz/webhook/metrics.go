package webhook

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are upstream's metrics of authorization webhooks, for all of them.
type Metrics struct {
	asked, open, excluded, unmatched *prometheus.CounterVec
	took                             *prometheus.HistogramVec
}

// NewMetrics registers them.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "apiserver", Subsystem: "authorization", Name: name, Help: help}, labels)
	}
	m := &Metrics{
		asked:     counter("webhook_evaluations_total", "Questions to authorization webhooks, by name and result: success, canceled, timeout or error.", "name", "result"),
		open:      counter("webhook_evaluations_fail_open_total", "Questions that were passed on to the next authorizer because they got no answer, by name and result: timeout or error.", "name", "result"),
		excluded:  counter("match_condition_exclusions_total", "Requests that match conditions kept from authorization webhooks, by type and name.", "type", "name"),
		unmatched: counter("match_condition_evaluation_errors_total", "Requests for which match conditions of authorization webhooks could not be told, by type and name.", "type", "name"),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "apiserver", Subsystem: "authorization", Name: "webhook_duration_seconds", Help: "How long authorization webhooks took, by name and result.",
		}, []string{"name", "result"}),
	}
	registry.MustRegister(m.asked, m.open, m.excluded, m.unmatched, m.took)
	return m
}

// answered counts a question that ended with err after a duration.
func (a *Authorizer) answered(err error, after time.Duration) {
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
	m.asked.WithLabelValues(a.options.Name, result).Inc()
	m.took.WithLabelValues(a.options.Name, result).Observe(after.Seconds())
	if err != nil && result != "canceled" && !a.options.FailClosed {
		m.open.WithLabelValues(a.options.Name, result).Inc()
	}
}

// passed counts a request about which the service was not asked, because its
// conditions exclude it or, with an error, could not be evaluated.
func (a *Authorizer) passed(err error) {
	m := a.options.Metrics
	if m == nil {
		return
	}
	of := m.excluded
	if err != nil {
		of = m.unmatched
	}
	of.WithLabelValues("Webhook", a.options.Name).Inc()
}
