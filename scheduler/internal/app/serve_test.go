package app

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestMetricsAreNotForStrangers(t *testing.T) {
	for name, test := range map[string]struct {
		path, from    string
		byCertificate bool
		verified      bool
		want          int
	}{
		"health, from anywhere":               {"/healthz", "10.1.2.3:4", true, false, http.StatusOK},
		"metrics, from here":                  {"/metrics", "127.0.0.1:4", false, false, http.StatusOK},
		"metrics, from here by IPv6":          {"/metrics", "[::1]:4", false, false, http.StatusOK},
		"metrics, from elsewhere":             {"/metrics", "10.1.2.3:4", false, false, http.StatusForbidden},
		"metrics, from nowhere":               {"/metrics", "", false, false, http.StatusForbidden},
		"metrics, no certificate, from here":  {"/metrics", "127.0.0.1:4", true, false, http.StatusUnauthorized},
		"metrics, certificate from elsewhere": {"/metrics", "10.1.2.3:4", true, true, http.StatusOK},
	} {
		r := httptest.NewRequest(http.MethodGet, "https://scheduler"+test.path, nil)
		r.RemoteAddr = test.from
		r.TLS = &tls.ConnectionState{}
		if test.verified {
			r.TLS.VerifiedChains = [][]*x509.Certificate{{}}
		}
		w := httptest.NewRecorder()
		guardMetrics(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }), test.byCertificate).ServeHTTP(w, r)
		if w.Code != test.want {
			t.Errorf("%s: %d, want %d", name, w.Code, test.want)
		}
	}
}
