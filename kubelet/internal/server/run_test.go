package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"kctl/kubelet/internal/server/auth"
	"kctl/proto/daemon"
	"kctl/proto/pki"
)

// With real TLS and a serving certificate: a client certificate of the right CA
// is accepted; one of another CA, or none, is answered with 401.
func TestRunTakesClientCertificates(t *testing.T) {
	dir := t.TempDir()
	start := time.Now()
	issue := func() (ca, client *pki.Pair) {
		ca, err := pki.NewCA("test", start, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		client, err = ca.Issue(pki.Subject{CommonName: "apiserver", Client: true}, start, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return ca, client
	}
	ca, good := issue()
	other, stranger := issue()
	caFile := filepath.Join(dir, "ca.crt")
	if err := ca.Save(caFile, filepath.Join(dir, "ca.key")); err != nil {
		t.Fatal(err)
	}
	now := testclock.NewFakePassiveClock(start)
	clients, err := pki.NewAuthorities("client certificate authority", caFile, now)
	if err != nil {
		t.Fatal(err)
	}
	n, _ := newNode(t)
	s := newServer(t, n, auth.Authentication{Certificates: clients})
	ctx, cancel := context.WithCancel(t.Context())
	addresses, done := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		done <- s.Run(ctx, ListenOptions{
			Address: "127.0.0.1:0", CertDir: filepath.Join(dir, "pki"), Clients: clients, TLS: daemon.TLSOptions{MinVersion: "VersionTLS13"},
			IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, OnListen: func(a net.Addr) { addresses <- a },
		})
	}()
	var address string
	select {
	case a := <-addresses:
		address = a.String()
	case err := <-done:
		t.Fatal(err)
	}
	serving, err := pki.Load(filepath.Join(dir, "pki", "kubelet.crt"), filepath.Join(dir, "pki", "kubelet.key"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(serving.Cert)
	connect := func(client *pki.Pair) *http.Transport {
		config := &tls.Config{RootCAs: roots}
		if client != nil {
			certificate, err := client.TLS()
			if err != nil {
				t.Fatal(err)
			}
			config.Certificates = []tls.Certificate{certificate}
		}
		transport := &http.Transport{TLSClientConfig: config}
		t.Cleanup(transport.CloseIdleConnections)
		return transport
	}
	askBy := func(transport *http.Transport) (int, string, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/containerLogs/ns/p/c", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body), err
	}
	ask := func(client *pki.Pair) (int, string, error) { return askBy(connect(client)) }
	if code, body, err := ask(good); err != nil || code != http.StatusOK || !strings.HasPrefix(body, "one\n") {
		t.Errorf("the right certificate: %d %q %v", code, body, err)
	}
	if code, _, err := ask(nil); err != nil || code != http.StatusUnauthorized {
		t.Errorf("no certificate: %d %v", code, err)
	}
	if code, _, err := ask(stranger); err != nil || code != http.StatusUnauthorized {
		t.Errorf("a stranger's certificate: %d %v", code, err)
	}
	old := &tls.Dialer{Config: &tls.Config{RootCAs: roots, MaxVersion: tls.VersionTLS12}}
	if conn, err := old.DialContext(t.Context(), "tcp", address); err == nil {
		t.Error("TLS 1.2 was spoken")
		_ = conn.Close()
	}
	// A connection outlives its authority.
	open := connect(good)
	for _, step := range []struct {
		trusted []byte
		want    int
	}{{ca.Cert, http.StatusOK}, {slices.Concat(other.Cert, ca.Cert), http.StatusOK}, {other.Cert, http.StatusUnauthorized}, {ca.Cert, http.StatusOK}} {
		if err := pki.WriteFile(caFile, step.trusted); err != nil {
			t.Fatal(err)
		}
		now.SetTime(now.Now().Add(time.Second))
		if code, _, err := askBy(open); err != nil || code != step.want {
			t.Errorf("on an open connection, once others are trusted: %d %v, want %d", code, err, step.want)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("at the end: %v", err)
	}
}
