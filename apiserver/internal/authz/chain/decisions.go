package chain

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"kctl/apiserver/internal/authz"
)

// newDecisions is upstream's metric of what each authorizer has decided.
func newDecisions(registry prometheus.Registerer) *prometheus.CounterVec {
	decisions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "apiserver", Subsystem: "authorization", Name: "decisions_total",
		Help: "Decisions of authorizers, by their type and name, and the decision: allowed or denied. Who has no opinion is not counted.",
	}, []string{"type", "name", "decision"})
	registry.MustRegister(decisions)
	return decisions
}

// counted is an authorizer whose decisions are counted.
type counted struct {
	authz.Named
	allowed, denied prometheus.Counter
}

func (o Options) counted(kind, name string, a authz.Authorizer) counted {
	return counted{
		Named:   authz.Named{Name: name, Authorizer: a},
		allowed: o.decisions.WithLabelValues(kind, name, "allowed"),
		denied:  o.decisions.WithLabelValues(kind, name, "denied"),
	}
}

// Authorize implements authz.Authorizer.
func (c counted) Authorize(ctx context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	decision, reason, err := c.Named.Authorize(ctx, a)
	switch decision {
	case authz.Allow:
		c.allowed.Inc()
	case authz.Deny:
		c.denied.Inc()
	}
	return decision, reason, err
}
