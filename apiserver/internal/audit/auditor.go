package audit

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"
)

// New returns an Auditor over a policy that LoadPolicy has checked.
func New(policy *Policy, sinks []Sink, registry prometheus.Registerer, clock clock.PassiveClock) *Auditor {
	return &Auditor{policy: policy, sinks: sinks, clock: clock, metrics: newMetrics(registry)}
}

// Run does the sinks' work until ctx ends and everything is written.
func (a *Auditor) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, sink := range a.sinks {
		group.Go(func() error { return sink.Run(ctx) })
	}
	return group.Wait()
}

// metrics have upstream's names.
type metrics struct {
	events, rejected prometheus.Counter
	levels           *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		events: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apiserver_audit_event_total", Help: "Counter of audit events generated and sent to the audit backend.",
		}),
		rejected: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apiserver_audit_requests_rejected_total",
			Help: "Counter of apiserver requests rejected due to an error in audit logging backend.",
		}),
		levels: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_audit_level_total", Help: "Counter of policy levels for audit events (1 per request).",
		}, []string{"level"}),
	}
	registry.MustRegister(m.events, m.rejected, m.levels)
	return m
}

// NewErrors returns the counter of events that a sink lost, by sink.
func NewErrors(registry prometheus.Registerer) *prometheus.CounterVec {
	lost := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "apiserver_audit_error_total",
		Help: "Counter of audit events that failed to be audited properly. Plugin identifies the plugin affected by the error.",
	}, []string{"plugin"})
	registry.MustRegister(lost)
	return lost
}
