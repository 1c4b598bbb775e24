package webhookclient

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/proto/daemon"
)

// load serves handler over TLS and returns a client for it.
func load(t *testing.T, clock clock.Clock, handler http.HandlerFunc) *Service {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	config := fmt.Sprintf("clusters: [{name: c, cluster: {server: %q, certificate-authority: ca.crt}}]\nusers: [{name: u, user: {token: secret}}]\n"+
		"contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n", server.URL+"/review?a=b")
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), ca, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Load(file, clock, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

func TestAsk(t *testing.T) {
	s := load(t, clock.RealClock{}, func(w http.ResponseWriter, r *http.Request) {
		var question map[string]string
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil || r.URL.String() != "/review?a=b" || r.Header.Get("Authorization") != "Bearer secret" ||
			r.UserAgent() != daemon.UserAgent("kctl-apiserver") {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		switch question["q"] {
		case "long":
			_, _ = w.Write(make([]byte, maxAnswer+1))
		case "rubbish":
			_, _ = w.Write([]byte("{"))
		case "elsewhere":
			http.Redirect(w, r, "/review?a=b", http.StatusPermanentRedirect)
		case "refused":
			http.Error(w, "no", http.StatusForbidden)
		default:
			_, _ = w.Write([]byte(`{"a":"42"}`))
		}
	})
	for question, want := range map[string]string{"": "", "long": "longer than", "rubbish": "decode", "refused": "403", "elsewhere": "308"} {
		var answer map[string]string
		err := s.Ask(t.Context(), map[string]string{"q": question}, &answer)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || want == "" && answer["a"] != "42" {
			t.Errorf("%q: %v %v", question, answer, err)
		}
	}
}

func TestHiccups(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(0, 0))
	var asked atomic.Int32
	s := load(t, clock, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("{}"))
	})
	done := make(chan error)
	go func() { done <- s.Ask(t.Context(), 1, &map[string]any{}) }()
	for {
		select {
		case err := <-done:
			if err != nil || asked.Load() != 3 {
				t.Errorf("asked %d times: %v", asked.Load(), err)
			}
			return
		default:
			if clock.HasWaiters() {
				clock.Step(10 * time.Second)
			}
		}
	}
}

func TestSilence(t *testing.T) {
	s := load(t, clock.RealClock{}, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Ask(ctx, 1, &map[string]any{}); err == nil {
		t.Error("an answer after the asker has gone")
	}
}

func TestLoadRefusesPlainHTTP(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	config := "clusters: [{name: c, cluster: {server: 'http://reviews.test'}}]\ncontexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file, clock.RealClock{}, nil); err == nil || !strings.Contains(err.Error(), "only https") {
		t.Errorf("loaded: %v", err)
	}
}
