package kubelet

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

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
