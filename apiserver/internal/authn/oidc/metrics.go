package oidc

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/identity"
	"kctl/proto/daemon"
)

// Metrics count what Authenticators do, under upstream's names. They are safe for concurrent use; a
// nil Metrics counts nothing.
type Metrics struct {
	latency *prometheus.HistogramVec
	fetched *prometheus.GaugeVec
	keySet  *prometheus.GaugeVec
	clock   clock.PassiveClock

	mu      sync.Mutex
	present map[string]string // the hash of each issuer's key set, by that of its address
}

const prefix = "apiserver_authentication_jwt_authenticator_"

// NewMetrics returns Metrics registered with registry.
func NewMetrics(registry prometheus.Registerer, clock clock.PassiveClock) *Metrics {
	m := &Metrics{
		latency: daemon.NewHistogramVec(prometheus.HistogramOpts{
			Name: prefix + "latency_seconds", Help: "How long it takes to check a token that was not checked lately, by result and issuer.",
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"result", "jwt_issuer_hash"}),
		fetched: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: prefix + "jwks_fetch_last_timestamp_seconds", Help: "When an issuer's keys were last fetched, by result and issuer.",
		}, []string{"result", "jwt_issuer_hash"}),
		keySet: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: prefix + "jwks_fetch_last_key_set_info", Help: "Which keys of an issuer were fetched last, by issuer and a hash of the keys.",
		}, []string{"jwt_issuer_hash", "hash"}),
		clock: clock, present: map[string]string{},
	}
	registry.MustRegister(m.latency)
	identity.Registerer(registry).MustRegister(m.fetched, m.keySet)
	return m
}

const succeeded, failed = "success", "failure"

func resultOf(err error) string {
	if err != nil {
		return failed
	}
	return succeeded
}

func (m *Metrics) observeCheck(issuer string, took time.Duration, err error) {
	if m != nil {
		m.latency.WithLabelValues(resultOf(err), identity.Hash(issuer)).Observe(took.Seconds())
	}
}

// observeKeys counts a request for an issuer's keys, which was answered with text.
func (m *Metrics) observeKeys(issuer string, text []byte, err error) {
	if m == nil {
		return
	}
	var keys struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err == nil {
		err = json.Unmarshal(text, &keys)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	of := identity.Hash(issuer)
	m.fetched.WithLabelValues(resultOf(err), of).Set(float64(m.clock.Now().UnixNano()) / 1e9)
	if hash := identity.Hash(string(text)); err == nil && m.present[of] != hash {
		m.keySet.DeleteLabelValues(of, m.present[of])
		m.keySet.WithLabelValues(of, hash).Set(1)
		m.present[of] = hash
	}
}

// Forget drops what is known of an issuer's keys, whose tokens are accepted no longer.
func (m *Metrics) Forget(issuer string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := identity.Hash(issuer)
	m.fetched.DeletePartialMatch(prometheus.Labels{"jwt_issuer_hash": of})
	m.keySet.DeletePartialMatch(prometheus.Labels{"jwt_issuer_hash": of})
	delete(m.present, of)
}

// isRedirected tells whether an answer leads elsewhere; the request that follows has the result.
func isRedirected(answer *http.Response) bool {
	return answer.StatusCode >= 300 && answer.StatusCode < 400 && answer.Header.Get("Location") != ""
}

// original is the request that redirects have led to r.
func original(r *http.Request) *http.Request {
	for r.Response != nil && r.Response.Request != nil {
		r = r.Response.Request
	}
	return r
}
