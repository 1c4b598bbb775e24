package operation

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/servertest"
	"kctl/proto/core"
	"kctl/proto/pki"
)

func TestOperation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	names := []string{"api.example.com", "*.wild.example.com"}
	other, err := pki.SelfSigned(pki.Subject{CommonName: "other", DNSNames: names, Server: true}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, key := filepath.Join(dir, "sni.crt"), filepath.Join(dir, "sni.key")
	if err := other.Save(cert, key); err != nil {
		t.Fatal(err)
	}
	c := startIn(t, dir, func(o *config.Options) {
		o.Operation.CORSOrigins = []string{`^https://example\.com$`}
		o.Operation.HSTSDirectives = []string{"max-age=31536000", "includeSubDomains"}
		o.Operation.TLS.MinVersion = "VersionTLS13"
		o.Operation.TLSSNICertKeys = []string{cert + "," + key, cert + "," + key + ":named.example.com"}
		o.Operation.GoawayChance = 0.02
		o.Operation.FeatureGates = map[string]string{"AllAlpha": "false"}
	})
	t.Run("cors", func(t *testing.T) {
		answer, _ := c.Request("OPTIONS", "/api", map[string]string{"Origin": "https://example.com"}, "")
		if answer.StatusCode != 204 || answer.Header.Get("Access-Control-Allow-Origin") != "https://example.com" ||
			answer.Header.Get("Access-Control-Allow-Credentials") != "true" {
			t.Errorf("%s %v", answer.Status, answer.Header)
		}
		if answer, _ := c.Request("OPTIONS", "/api", map[string]string{"Origin": "https://example.com.evil.org"}, ""); answer.StatusCode != 401 ||
			answer.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("another origin: %s %v", answer.Status, answer.Header)
		}
	})
	t.Run("strict transport", func(t *testing.T) {
		if answer, _ := c.Request("GET", "/api", servertest.AsMaster(), ""); answer.Header.Get("Strict-Transport-Security") != "max-age=31536000; includeSubDomains" {
			t.Errorf("%v", answer.Header)
		}
	})
	t.Run("tls", func(t *testing.T) {
		dial := func(name string, max uint16) (string, error) {
			conn, err := tls.Dial("tcp", strings.TrimPrefix(c.Address, "https://"), &tls.Config{ServerName: name, InsecureSkipVerify: true, MaxVersion: max})
			if err != nil {
				return "", err
			}
			defer conn.Close()
			return conn.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
		}
		for name, want := range map[string]string{
			"api.example.com": "other", "x.wild.example.com": "other", "x.y.wild.example.com": "server",
			"named.example.com": "other", "elsewhere.org": "server", "": "server",
		} {
			if got, err := dial(name, 0); err != nil || got != want {
				t.Errorf("%q: %q %v, want %q", name, got, err, want)
			}
		}
		if _, err := dial("", tls.VersionTLS12); err == nil {
			t.Error("TLS 1.2 was spoken")
		}
	})
	t.Run("goaway", func(t *testing.T) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		var dialed atomic.Int32
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			dialed.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
		for range 2000 {
			r, err := http.NewRequestWithContext(t.Context(), "GET", c.Address+"/version", nil)
			c.Must(err)
			r.Header.Set("Authorization", "Bearer master")
			answer, err := transport.RoundTrip(r)
			c.Must(err)
			_, _ = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			if dialed.Load() > 1 {
				return
			}
		}
		t.Error("no GOAWAY in 2,000 requests")
	})
	t.Run("log verbosity", func(t *testing.T) {
		if answer, text := c.Request("PUT", "/debug/flags/v", servertest.AsMaster(), "5"); answer.StatusCode != 200 ||
			text != "successfully set klog.logging.verbosity to 5" {
			t.Errorf("%s %s", answer.Status, text)
		}
		if answer, _ := c.Request("PUT", "/debug/flags/v", servertest.AsMaster(), "loud"); answer.StatusCode != 400 {
			t.Errorf("nonsense: %s", answer.Status)
		}
		if answer, _ := c.Request("PUT", "/debug/flags/v", map[string]string{"Authorization": "Bearer nobody"}, "5"); answer.StatusCode != 403 {
			t.Errorf("without rights: %s", answer.Status)
		}
	})
	t.Run("health of one check", func(t *testing.T) {
		if answer, text := c.Request("GET", "/readyz/poststarthook/rbac/bootstrap-roles", servertest.AsMaster(), ""); answer.StatusCode != 200 || text != "ok" {
			t.Errorf("%s %s", answer.Status, text)
		}
		if answer, text := c.Request("GET", "/readyz?verbose&exclude=etcd", servertest.AsMaster(), ""); answer.StatusCode != 200 ||
			!strings.Contains(text, "[+]etcd excluded: ok\n") {
			t.Errorf("%s %s", answer.Status, text)
		}
		if answer, _ := c.Request("GET", "/logs/", servertest.AsMaster(), ""); answer.StatusCode != 404 {
			t.Errorf("/logs/: %s", answer.Status)
		}
	})
	t.Run("a review that is late", func(t *testing.T) {
		// Reviews read their bodies themselves.
		const late = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews?timeout=1ns"
		if answer, _ := c.Request("POST", late, servertest.AsMaster(), `{}`); answer.StatusCode == 500 {
			t.Errorf("%s", answer.Status)
		}
	})
	t.Run("housekeeping is led", func(t *testing.T) {
		lease := &core.Lease{}
		c.Until("the lease is held", func(ctx context.Context) bool {
			return c.Root().Resource(core.Leases, "kube-system").Get(ctx, "kctl-housekeeping", lease) == nil
		})
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
			t.Errorf("%+v", lease.Spec)
		}
	})
}

// While a server drains with --shutdown-send-retry-after, it finishes requests
// in flight and tells others to come back.
func TestDrainTurnsAway(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *config.Options) { o.Operation.ShutdownSendRetryAfter = true })
	conn, err := tls.Dial("tcp", strings.TrimPrefix(c.Address, "https://"), &tls.Config{InsecureSkipVerify: true})
	c.Must(err)
	defer conn.Close()
	// A request whose body is incomplete is in flight.
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"late"}}`
	head := "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer master\r\nContent-Type: " +
		"application/json\r\nContent-Length: 65\r\n\r\n"
	_, err = conn.Write([]byte(head + body[:10]))
	c.Must(err)
	c.Until("the request is under way", func(context.Context) bool {
		_, text := c.Request("GET", "/metrics", servertest.AsMaster(), "")
		return strings.Contains(text, `apiserver_current_inflight_requests{request_kind="mutating"} 1`)
	})
	stopped := make(chan error, 1)
	go func() { stopped <- c.Stop() }()
	c.Until("others are turned away", func(context.Context) bool {
		answer, _ := c.Request("GET", "/api", servertest.AsMaster(), "")
		return answer.StatusCode == 429 && answer.Header.Get("Retry-After") == "5"
	})
	_, err = conn.Write([]byte(body[10:]))
	c.Must(err)
	c.Must(conn.SetReadDeadline(time.Now().Add(servertest.Patience)))
	status := make([]byte, 12)
	if _, err := io.ReadFull(conn, status); err != nil || string(status) != "HTTP/1.1 201" {
		t.Errorf("the request under way: %q %v", status, err)
	}
	c.Must(<-stopped)
	var opErr *net.OpError
	if _, err := net.Dial("tcp", strings.TrimPrefix(c.Address, "https://")); !errors.As(err, &opErr) {
		t.Errorf("still listening: %v", err)
	}
}
