package oidc

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestAnIssuerThatAnswersTooMuch: an issuer's headers are bounded as its documents are, and so is
// the error, which has what the issuer answered in it.
func TestAnIssuerThatAnswersTooMuch(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	headers := func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["X-Long"] = slices.Repeat([]string{long[:1<<10]}, 1<<10)
	}
	for name, c := range map[string]struct {
		http2 bool
		serve http.HandlerFunc
		says  string
	}{
		"headers by HTTP/1": {false, headers, "headers exceeded"},
		"headers by HTTP/2": {true, headers, "header list larger"},
		"an error":          {false, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, long, http.StatusForbidden) }, "403"},
	} {
		t.Run(name, func(t *testing.T) {
			i := newIssuer(t)
			server := httptest.NewUnstartedServer(nil)
			server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c.serve(w, r)
				_ = json.NewEncoder(w).Encode(map[string]any{"issuer": server.URL, "jwks_uri": i.URL + "/keys"})
			})
			server.EnableHTTP2 = c.http2
			server.StartTLS()
			t.Cleanup(server.Close)
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
			a, _ := i.authenticator(t, func(o *Options) { o.IssuerURL, o.Authorities = server.URL, ca })
			_, _, ok, err := a.AuthenticateToken(t.Context(), i.sign(t, map[string]any{"iss": server.URL}), nil)
			if ok || err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%v, %.200v, want %q", ok, err, c.says)
			}
			if len(err.Error()) > 20_000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if err := a.Discover(t.Context()); err == nil || len(err.Error()) > 20_000 {
				t.Errorf("of the discovery: %.200v", err)
			}
		})
	}
}
