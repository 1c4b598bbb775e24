package serving

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/config"
	"kctl/kubelet/internal/identity"
	"kctl/kubelet/internal/podmanager"
	"kctl/kubelet/internal/server"
	"kctl/proto/daemon"
	"kctl/proto/eventually"
	"kctl/proto/pki"
)

// bed is the ports of a kubelet without an API server, and a client of its authority.
type bed struct {
	*Servers
	t       *testing.T
	config  *config.Config
	trusted *pki.Pair // clients' authority
}

func newBed(t *testing.T) *bed {
	t.Helper()
	dir := t.TempDir()
	ca, err := pki.NewCA("clients", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	c := config.New()
	c.RootDir, c.CertDir, c.Serving.ClientCAFile = dir, filepath.Join(dir, "pki"), filepath.Join(dir, "ca.crt")
	c.NodeName, c.NodeIP, c.Serving.Address, c.Serving.Port, c.Serving.HealthzPort = "n1", "192.0.2.1", "127.0.0.1", 0, 0
	if err := ca.Save(c.Serving.ClientCAFile, filepath.Join(dir, "ca.key")); err != nil {
		t.Fatal(err)
	}
	id, err := identity.Find(c, clock.RealClock{}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	return &bed{Servers: New(c, id, nil, clock.RealClock{}, zap.NewNop()), t: t, config: c, trusted: ca}
}

// run runs the ports until the test ends, and returns once they are known.
func (b *bed) run() {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	listening, ended := make(chan struct{}), make(chan error, 1)
	about := server.Config{Pods: podmanager.New(), Health: daemon.NewHealth(), Metrics: prometheus.NewRegistry()}
	go func() { ended <- b.Run(ctx, about, func() { close(listening) }) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.t.Errorf("at the end: %v", err)
		}
	})
	select {
	case <-listening:
	case err := <-ended:
		ended <- nil
		b.t.Fatal(err)
	}
}

// shown is the certificate in a file.
func (b *bed) shown(file string) *x509.Certificate {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.config.CertDir, file))
	if err != nil {
		b.t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		b.t.Fatal(err)
	}
	return certificate
}

// client is one that trusts a certificate, and has one of an authority if that is not nil.
func (b *bed) client(trusts *x509.Certificate, authority *pki.Pair) *http.Client {
	b.t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(trusts)
	c := &tls.Config{RootCAs: roots, ServerName: "n1"}
	if authority != nil {
		pair, err := authority.Issue(pki.Subject{CommonName: "somebody", Client: true}, time.Now(), time.Hour)
		if err != nil {
			b.t.Fatal(err)
		}
		certificate, err := pair.TLS()
		if err != nil {
			b.t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{certificate}
	}
	transport := &http.Transport{TLSClientConfig: c}
	b.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (b *bed) get(client *http.Client, url string) (int, string) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	resp, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// freePort is one that nothing listens on.
func freePort(t *testing.T) int32 {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return int32(listener.Addr().(*net.TCPAddr).Port)
}

// Without an API server the port is open to whoever has a certificate of the authority, and to nobody
// else; it is known by a certificate of the node's own.
func TestThePortIsOpenToCertificates(t *testing.T) {
	b := newBed(t)
	if b.Port() != 0 {
		t.Errorf("before it listens: %d", b.Port())
	}
	b.run()
	url := fmt.Sprintf("https://127.0.0.1:%d/pods", b.Port())
	own := b.shown("kubelet.crt")
	if code, text := b.get(b.client(own, b.trusted), url); code != http.StatusOK || !strings.Contains(text, "PodList") {
		t.Errorf("with a certificate: %d %s", code, text)
	}
	if code, text := b.get(b.client(own, nil), url); code != http.StatusUnauthorized {
		t.Errorf("without: %d %s", code, text)
	}
}

// Where the API server is to sign the certificate, a provisional one is shown until it has.
func TestAProvisionalCertificate(t *testing.T) {
	b := newBed(t)
	b.config.ServerTLSBootstrap = true
	b.run()
	client := b.client(b.shown("kubelet-server-current.pem"), b.trusted)
	if code, text := b.get(client, fmt.Sprintf("https://127.0.0.1:%d/pods", b.Port())); code != http.StatusOK {
		t.Errorf("%d %s", code, text)
	}
}

// What the configuration closes is closed, and what it opens is open.
func TestTheConfigurationOpensAndCloses(t *testing.T) {
	b := newBed(t)
	b.config.Serving.AnonymousAuth, b.config.Serving.EnableDebugFlagsHandler = true, false
	b.config.Serving.EnableProfilingHandler, b.config.Serving.EnableSystemLogHandler = false, false
	b.run()
	client, base := b.client(b.shown("kubelet.crt"), nil), fmt.Sprintf("https://127.0.0.1:%d", b.Port())
	for path, want := range map[string]int{
		"/pods":             http.StatusOK,
		"/configz":          http.StatusOK,
		"/debug/flags":      http.StatusNotFound,
		"/debug/pprof/heap": http.StatusNotFound,
		"/logs/dpkg.log":    http.StatusMethodNotAllowed,
	} {
		if code, text := b.get(client, base+path); code != want {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if code, text := b.get(client, base+"/configz"); code != http.StatusOK || !strings.Contains(text, `"enableSystemLogHandler":false`) {
		t.Errorf("the configuration: %d %s", code, text)
	}
}

// The read-only port is open to all, beside the other and alone.
func TestTheReadOnlyPort(t *testing.T) {
	for _, beside := range []bool{true, false} {
		b := newBed(t)
		b.config.Serving.EnableServer, b.config.Serving.ReadOnlyPort = beside, freePort(t)
		b.run()
		base := fmt.Sprintf("http://127.0.0.1:%d", b.config.Serving.ReadOnlyPort)
		eventually.Holds(t, "the read-only port to answer", func() bool {
			code, _ := b.get(http.DefaultClient, base+"/pods")
			return code == http.StatusOK
		})
		if code, text := b.get(http.DefaultClient, base+"/exec/n/p/c"); code != http.StatusMethodNotAllowed {
			t.Errorf("a way into pods: %d %s", code, text)
		}
		if beside != (b.Port() != 0) {
			t.Errorf("beside the other: %t: that is at %d", beside, b.Port())
		}
	}
}

// A kubelet without ports goes on.
func TestNoPorts(t *testing.T) {
	b := newBed(t)
	b.config.Serving.EnableServer = false
	listening := false
	if err := b.Run(t.Context(), server.Config{}, func() { listening = true }); err != nil || !listening {
		t.Errorf("no port is known: %t, %v", listening, err)
	}
	if err := b.RunHealth(t.Context(), daemon.NewHealth(), prometheus.NewRegistry()); err != nil {
		t.Errorf("health: %v", err)
	}
}

// The health port answers everybody, until the kubelet ends.
func TestTheHealthPort(t *testing.T) {
	b := newBed(t)
	b.config.Serving.HealthzPort = freePort(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.RunHealth(ctx, daemon.NewHealth(), prometheus.NewRegistry()) }()
	url := fmt.Sprintf("http://127.0.0.1:%d/healthz", b.config.Serving.HealthzPort)
	eventually.Holds(t, "the health port to answer", func() bool {
		code, text := b.get(http.DefaultClient, url)
		return code == http.StatusOK && text == "ok"
	})
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("at the end: %v", err)
	}
}

// Clients' authorities that can't be read are said so before anything listens.
func TestABadAuthority(t *testing.T) {
	b := newBed(t)
	b.config.Serving.ClientCAFile = filepath.Join(t.TempDir(), "none")
	ctx, cancel := context.WithCancel(t.Context())
	err := b.Run(ctx, server.Config{}, cancel) // it listens until then
	if err == nil || !strings.Contains(err.Error(), b.config.Serving.ClientCAFile) {
		t.Errorf("got %v", err)
	}
}
