package upgrade

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"testing"
)

// TestInformationKeepsTheHeaders: a backend's informational responses take none of the
// headers away that were set before it was asked.
func TestInformationKeepsTheHeaders(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hints" {
			w.Header().Set("Link", "</x>")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusProcessing)
			w.Header().Del("Link")
		}
		if r.Header.Get("Upgrade") != "" {
			upgrades(t, func(c net.Conn, _ io.Reader) {})(w, r)
			return
		}
		w.Header().Set("X-Both", "backend")
	}))
	defer backend.Close()
	to, err := url.Parse(backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Audit-Id", "7")
		w.Header().Set("X-Both", "front")
		Serve(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}, w, r)
	}))
	defer front.Close()
	for _, path := range []string{"/", "/hints"} {
		for _, protocol := range []string{"", "x"} {
			request, err := http.NewRequestWithContext(t.Context(), "GET", front.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"front", "backend"}
			if protocol != "" {
				request.Header.Set("Connection", "Upgrade")
				request.Header.Set("Upgrade", protocol)
				want = want[:1]
			}
			answer, err := http.DefaultTransport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if got := answer.Header; got.Get("Audit-Id") != "7" || !slices.Equal(got.Values("X-Both"), want) || got.Get("Link") != "" {
				t.Errorf("%s, upgrade %q: %v", path, protocol, got)
			}
		}
	}
}
