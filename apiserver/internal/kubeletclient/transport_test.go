package kubeletclient

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/proto/pki"
)

// ask returns the kubelet's answer.
func ask(t *testing.T, c *Client, at string, unchecked bool) (string, error) {
	t.Helper()
	to, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Get(t.Context(), to, unchecked)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body), nil
}

// TestKubeletsAreChecked: by the CA, unless that is turned off.
func TestKubeletsAreChecked(t *testing.T) {
	kubelet := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a log") }))
	defer kubelet.Close()
	other, err := pki.NewCA("another", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	theirs, others := filepath.Join(dir, "theirs"), filepath.Join(dir, "others")
	if err := os.WriteFile(theirs, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: kubelet.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(others, other.Cert, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		authority     string
		unchecked, ok bool
	}{{"", false, true}, {theirs, false, true}, {others, false, false}, {others, true, true}} {
		client, err := New(Options{CAFile: c.authority})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if body, err := ask(t, client, kubelet.URL, c.unchecked); (err == nil && body == "a log") != c.ok {
			t.Errorf("%+v: %q %v", c, body, err)
		}
	}
}

// TestTheAuthorityOfKubeletsIsReplaced: what its file says is trusted, without a restart; a file
// without an authority leaves the old one trusted.
func TestTheAuthorityOfKubeletsIsReplaced(t *testing.T) {
	kubelet := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a log") }))
	defer kubelet.Close()
	other, err := pki.NewCA("another", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := pki.WriteFile(file, other.Cert); err != nil {
		t.Fatal(err)
	}
	now := testingclock.NewFakeClock(time.Now())
	log, logged := observer.New(zap.InfoLevel)
	client, err := newClient(Options{CAFile: file, Logger: zap.New(log)}, now)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	proxies := client.Transport(func(net.IP) error { return nil })
	theirs := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: kubelet.Certificate().Raw})
	for _, step := range []struct {
		content []byte
		ok      bool
	}{{other.Cert, false}, {theirs, true}, {[]byte("torn"), true}, {other.Cert, false}, {theirs, true}} {
		if err := pki.WriteFile(file, step.content); err != nil {
			t.Fatal(err)
		}
		now.Step(time.Second)
		if _, err := ask(t, client, kubelet.URL, false); (err == nil) != step.ok {
			t.Errorf("with %.40q: %v", step.content, err)
		}
		r, err := http.NewRequestWithContext(t.Context(), "GET", kubelet.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := proxies.RoundTrip(r)
		if err == nil {
			answer.Body.Close()
		}
		if (err == nil) != step.ok {
			t.Errorf("through a proxy, with %.40q: %v", step.content, err)
		}
	}
	if logged.Len() != 1 {
		t.Errorf("logged %v, want once that the torn file is not taken", logged.All())
	}
}

// TestRenewedCertificate: kubelets get a new client certificate as soon as it
// exists, even if a connection with the old one is open.
func TestRenewedCertificate(t *testing.T) {
	kubelet := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	kubelet.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, ClientCAs: x509.NewCertPool()}
	kubelet.StartTLS()
	defer kubelet.Close()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	written := time.Now()
	write := func(name string) {
		pair, err := pki.SelfSigned(pki.Subject{CommonName: name, Client: true}, time.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if err := pair.Save(cert, key); err != nil {
			t.Fatal(err)
		}
		written = written.Add(time.Second) // however coarse the file system's clock
		if err := os.Chtimes(cert, written, written); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	client, err := New(Options{CertFile: cert, KeyFile: key})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, name := range []string{"one", "two", "three"} {
		write(name)
		if body, err := ask(t, client, kubelet.URL, false); err != nil || body != name {
			t.Errorf("%s: the kubelet saw %q, %v", name, body, err)
		}
	}
}
