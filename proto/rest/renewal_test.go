package rest

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/proto/pki"
)

// A certificate in a kubeconfig is replaced while the client runs: when the
// server no longer accepts the old one, the client uses the new one.
func TestACertificateInAKubeconfigIsReplaced(t *testing.T) {
	ca, err := pki.NewCA("ca", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS.PeerCertificates[0].Subject.CommonName == "old" && r.URL.Path == "/expired" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"metadata":{"name":%q}}`, r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	write := func(name string, modified time.Time) {
		pair, err := ca.Issue(pki.Subject{CommonName: name, Client: true}, time.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("current-context: x\nclusters: [{name: x, cluster: {server: '%s', insecure-skip-tls-verify: true}}]\ncontexts: [{name: x, context: "+
			"{cluster: x, user: x}}]\nusers: [{name: x, user: {client-certificate-data: %s, client-key-data: %s}}]\n",
			server.URL, base64.StdEncoding.EncodeToString(pair.Cert), base64.StdEncoding.EncodeToString(pair.Key))
		writeAt(t, path, text, modified)
	}
	write("old", time.Now().Add(-time.Hour))
	config, err := LoadKubeconfig(path)
	if err != nil {
		t.Fatal(err)
	}
	client, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer client.HTTP().CloseIdleConnections()
	ask := func(path string) (string, error) {
		var who struct{ Metadata struct{ Name string } }
		err := client.Do(t.Context(), http.MethodGet, path, nil, &who)
		return who.Metadata.Name, err
	}
	if who, err := ask("/"); err != nil || who != "old" {
		t.Fatalf("first: %q, %v", who, err)
	}
	write("new", time.Now())
	if who, err := ask("/"); err != nil || who != "old" {
		t.Errorf("on the same connection: %q, %v", who, err)
	}
	if _, err := ask("/expired"); !apierrors.IsUnauthorized(err) {
		t.Errorf("with the old certificate: %v", err)
	}
	if who, err := ask("/expired"); err != nil || who != "new" {
		t.Errorf("after a refusal: %q, %v", who, err)
	}
	// With an invalid file, the last good certificate stays in use.
	if err := os.WriteFile(path, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	client.Reconnect()
	if who, err := ask("/"); err != nil || who != "new" {
		t.Errorf("with rubbish in the file: %q, %v", who, err)
	}
}
