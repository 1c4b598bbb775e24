package serviceaccount

import "github.com/prometheus/client_golang/prometheus"

// Uses counts the use of tokens, under upstream's names. Cached answers are not
// counted again.
type Uses struct {
	valid, stale                      prometheus.Counter // bound ones
	legacy, manual, automatic, marked prometheus.Counter // those in secrets
}

// NewUses returns Uses with counters registered with registry.
func NewUses(registry prometheus.Registerer) *Uses {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: "serviceaccount", Name: name, Help: help})
		registry.MustRegister(c)
		return c
	}
	return &Uses{
		valid:     counter("valid_tokens_total", "Cumulative valid projected service account tokens used"),
		stale:     counter("stale_tokens_total", "Cumulative stale projected service account tokens used"),
		legacy:    counter("legacy_tokens_total", "Cumulative legacy service account tokens used"),
		manual:    counter("legacy_manual_token_uses_total", "Cumulative manually created legacy tokens used"),
		automatic: counter("legacy_auto_token_uses_total", "Cumulative auto-generated legacy tokens used"),
		marked:    counter("invalid_legacy_auto_token_uses_total", "Cumulative invalid auto-generated legacy tokens used"),
	}
}
