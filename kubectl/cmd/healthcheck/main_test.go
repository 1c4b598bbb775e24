package main

import (
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAsk(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
		}
		if r.URL.Path != "/well" {
			http.Error(w, "[-]etcd failed", http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	trusting, err := tlsConfig(ca, "", "")
	if err != nil {
		t.Fatal(err)
	}
	for path, test := range map[string]struct {
		config  *tls.Config
		timeout time.Duration
		want    string
	}{
		"/well":   {trusting, time.Minute, ""},
		"/ill":    {trusting, time.Minute, "500 Internal Server Error: [-]etcd failed"},
		"/slow":   {trusting, time.Millisecond, "context deadline exceeded"},
		"/well?x": {&tls.Config{}, time.Minute, "certificate"},
	} {
		err := checkEndpoint(server.URL+path, test.config, test.timeout)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", path, err, test.want)
		}
	}
	for _, wrong := range [][3]string{{"none", "", ""}, {"main.go", "", ""}, {"", "none", "none"}} {
		if _, err := tlsConfig(wrong[0], wrong[1], wrong[2]); err == nil {
			t.Errorf("%q: no error", wrong)
		}
	}
}
