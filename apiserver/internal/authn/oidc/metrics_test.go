package oidc

import (
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/identity"
)

// TestMetrics: the latest keys of an issuer are told apart from those before, and forgotten with it.
func TestMetrics(t *testing.T) {
	i := newIssuer(t)
	registry := prometheus.NewRegistry()
	metrics := NewMetrics(registry, testingclock.NewFakePassiveClock(now))
	a, _ := i.authenticator(t, func(o *Options) { o.Metrics = metrics })
	series := func(name string) int {
		t.Helper()
		n, err := testutil.GatherAndCount(registry, prefix+name)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	i.check(t, a, i.sign(t, nil), result{user: "ISSUER#jane"})
	i.check(t, a, i.sign(t, jwt.MapClaims{"exp": now.Unix() - 1}), result{err: "expired"})
	i.check(t, a, i.sign(t, jwt.MapClaims{"iss": "https://other"}), result{})
	if n := series("latency_seconds"); n != 2 {
		t.Errorf("latencies are told of %d results, want 2", n)
	}
	first := metrics.present[identity.Hash(i.URL)]
	when := func(result string) float64 {
		return testutil.ToFloat64(metrics.fetched.WithLabelValues(result, identity.Hash(i.URL)))
	}
	if at := when(succeeded); at != float64(now.Unix()) {
		t.Errorf("the keys were fetched at %v", at)
	}
	i.rotate(t, "second")
	until(t, a, i.sign(t, nil), true)
	if second := metrics.present[identity.Hash(i.URL)]; first == "" || second == first || series("jwks_fetch_last_key_set_info") != 1 {
		t.Errorf("after a rotation, keys %s are known instead of %s, as %d series", second, first, series("jwks_fetch_last_key_set_info"))
	}
	i.rotate(t, "third")
	token := i.sign(t, nil)
	i.Close()
	i.check(t, a, token, result{err: "connection refused"})
	if at := when(failed); at != float64(now.Unix()) {
		t.Errorf("the keys could not be fetched at %v", at)
	}
	metrics.Forget(i.URL)
	if n := series("jwks_fetch_last_key_set_info") + series("jwks_fetch_last_timestamp_seconds"); n != 0 {
		t.Errorf("%d series of an issuer are left that was forgotten", n)
	}
}
