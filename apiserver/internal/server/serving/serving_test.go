package serving

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
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
	testclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/filters"
	"kctl/proto/daemon"
	"kctl/proto/eventually"
	"kctl/proto/pki"
)

// A server that is told to stop serves on for the shutdown delay, then ends
// streams, finishes requests in flight, and closes the port.
func TestDrain(t *testing.T) {
	o := config.Defaults()
	o.Complete()
	o.DataDir, o.CertDir, o.SecurePort = t.TempDir(), t.TempDir(), 0
	o.ShutdownDelay = time.Minute
	clock := testclock.NewFakeClock(time.Now())
	security, certificate, err := TLS(o, clock, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	listener, err := Listen(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("https://127.0.0.1:%d", Port(listener))
	if told, err := os.ReadFile(filepath.Join(o.DataDir, PortFile)); err != nil || strings.TrimSpace(string(told)) != fmt.Sprint(Port(listener)) {
		t.Errorf("the port file says %q (%v)", told, err)
	}

	stopping, streamsEnd := make(chan struct{}), make(chan struct{})
	entered, finish := make(chan struct{}), make(chan struct{})
	server := &Server{
		Flags: o, TLS: security, Stopping: func() { close(stopping) }, EndStreams: func() { close(streamsEnd) },
		Drain: filters.NewDrain(), Metrics: prometheus.NewRegistry(), Clock: clock, Logger: zap.NewNop(),
	}
	ended := make(chan error, 1)
	go func() {
		ended <- server.Serve(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				close(entered)
				<-finish
			}
			_, _ = io.WriteString(w, "done")
		}))
	}()
	client := trusting(t, certificate)
	slow := make(chan error, 1)
	go func() { slow <- get(client, address+"/slow") }()
	<-entered

	stop()
	<-stopping
	if err := get(client, address+"/quick"); err != nil {
		t.Errorf("during the shutdown delay: %v", err)
	}
	eventually.Holds(t, "the shutdown waits", clock.HasWaiters)
	select {
	case <-streamsEnd:
		t.Error("streams end before the delay")
	default:
	}
	if clock.Step(o.ShutdownDelay - 1); !clock.HasWaiters() {
		t.Error("the delay is over too soon")
	}
	clock.Step(1)
	<-streamsEnd
	select {
	case err := <-ended:
		t.Fatalf("ended with a request under way: %v", err)
	default:
	}
	close(finish)
	if err := <-slow; err != nil {
		t.Errorf("the request that was under way: %v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := get(trusting(t, certificate), address+"/quick"); err == nil {
		t.Error("the port is open afterwards")
	}
}

// TestBounds: too many unauthenticated clients leave room for authenticated
// ones, and for each other.
func TestBounds(t *testing.T) {
	o := config.Defaults()
	o.Complete()
	o.DataDir, o.CertDir, o.SecurePort = t.TempDir(), t.TempDir(), 0
	security, certificate, err := TLS(o, clock.RealClock{}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	listener, err := Listen(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	server := &Server{
		Flags: o, TLS: security, Stopping: func() {}, EndStreams: func() {}, Drain: filters.NewDrain(), Metrics: prometheus.NewRegistry(),
		Clock: clock.RealClock{}, Logger: zap.NewNop(),
	}
	ended := make(chan error, 1)
	go func() {
		ended <- server.Serve(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			daemon.OwnConnection(r.Context(), "jane")
			_, _ = io.WriteString(w, "done"+r.RemoteAddr)
		}))
	}()
	client := trusting(t, certificate)
	whence := func() string {
		answer, err := client.Get("https://" + listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	jane := whence()
	var strangers []net.Conn
	for range daemon.NewConnections(zap.NewNop()).Strangers + 1 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		strangers = append(strangers, conn)
	}
	if _, err := strangers[0].Read(make([]byte, 1)); err == nil {
		t.Error("the oldest of too many strangers is still there")
	}
	if again := whence(); again != jane {
		t.Errorf("the connection from %s was replaced by one from %s", jane, again)
	}
	for _, conn := range strangers {
		_ = conn.Close()
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// trusting is a client that trusts this certificate.
func trusting(t *testing.T, certificate string) *http.Client {
	t.Helper()
	pem, err := os.ReadFile(certificate)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		t.Fatalf("%s has no certificate", certificate)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func get(client *http.Client, url string) error {
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || string(text) != "done" {
		return fmt.Errorf("%s %q: %w", answer.Status, text, err)
	}
	return nil
}

// A client with several certificates chooses by the CA names that the server
// accepts, even after the CA file is replaced.
func TestAuthoritiesAreNamed(t *testing.T) {
	clock := testclock.NewFakeClock(time.Now())
	o := config.Defaults()
	o.Complete()
	o.CertDir, o.ClientCAFile = t.TempDir(), filepath.Join(t.TempDir(), "ca.crt")
	put := func(name string) {
		authority, err := pki.NewCA(name, clock.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(o.ClientCAFile, authority.Cert, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("before")
	c, _, err := TLS(o, clock, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"before", "after"} {
		put(name)
		clock.Step(4 * time.Second) // as long as upstream's tests wait
		here, there := net.Pipe()
		server := tls.Server(here, c)
		go func() { _ = server.HandshakeContext(t.Context()) }()
		var named [][]byte
		client := tls.Client(there, &tls.Config{
			InsecureSkipVerify: true, //nolint:gosec // whom it speaks to is not what is asked here
			NextProtos:         []string{"h2"},
			GetClientCertificate: func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
				named = asked.AcceptableCAs
				return &tls.Certificate{}, nil
			},
		})
		if err := client.HandshakeContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(named) != 1 || !bytes.Contains(named[0], []byte(name)) {
			t.Errorf("named: %q, want %s", named, name)
		}
		if protocol := client.ConnectionState().NegotiatedProtocol; protocol != "h2" {
			t.Errorf("speaks %q", protocol)
		}
		_ = there.Close()
	}
}
