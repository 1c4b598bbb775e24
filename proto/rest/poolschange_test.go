package rest

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"kctl/proto/pki"
)

// servedBy starts a server with a certificate of an authority.
func servedBy(t *testing.T, cert *tls.Certificate) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{*cert}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// kubectl config use-context changes the file of a program that runs: that stays with
// its server, and with the authority and the certificate that it has for that.
func TestAnotherContextIsMadeCurrent(t *testing.T) {
	mineCA, mine := authority(t, "mine")
	otherCA, _ := authority(t, "other")
	server := servedBy(t, mine)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	inline := func(ca *pki.Pair) string { return base64.StdEncoding.EncodeToString(ca.Cert) }
	write := func(current, mineServer string, mineAuthority *pki.Pair, modified time.Time) {
		t.Helper()
		writeAt(t, path, fmt.Sprintf(`current-context: %s
clusters: [{name: mine, cluster: {server: '%s', certificate-authority-data: %s}}, {name: other, cluster: {server: 'https://127.0.0.1:1', certificate-authority-data: %s}}]
contexts: [{name: mine, context: {cluster: mine}}, {name: other, context: {cluster: other}}]
`, current, mineServer, inline(mineAuthority), inline(otherCA)), modified)
	}
	write("mine", server.URL, mineCA, time.Now().Add(-time.Hour))
	config, err := LoadKubeconfig(path)
	if err != nil {
		t.Fatal(err)
	}
	clock := testingclock.NewFakeClock(time.Now())
	client, err := newClient(config, clock)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(what string) {
		t.Helper()
		clock.Step(time.Minute)
		client.Reconnect()
		if err := client.Do(t.Context(), http.MethodGet, "/", nil, nil); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	ask("at first")
	write("other", server.URL, mineCA, time.Now())
	ask("when another context is current")
	write("mine", "https://127.0.0.1:1", otherCA, time.Now().Add(time.Hour))
	ask("when the context names another server")
}

// The file may change between its being read and the client's being made.
func TestTheAuthorityIsReplacedBeforeTheClientIsMade(t *testing.T) {
	oldCA, _ := authority(t, "old")
	newCA, newServing := authority(t, "new")
	server := servedBy(t, newServing)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	write := func(ca *pki.Pair, modified time.Time) {
		t.Helper()
		writeAt(t, path,
			fmt.Sprintf("current-context: x\nclusters: [{name: x, cluster: {server: '%s', certificate-authority-data: %s}}]\ncontexts: [{name: "+
				"x, context: {cluster: x}}]\n",
				server.URL, base64.StdEncoding.EncodeToString(ca.Cert)), modified)
	}
	write(oldCA, time.Now().Add(-time.Hour))
	config, err := LoadKubeconfig(path)
	if err != nil {
		t.Fatal(err)
	}
	write(newCA, time.Now())
	clock := testingclock.NewFakeClock(time.Now())
	client, err := newClient(config, clock)
	if err != nil {
		t.Fatal(err)
	}
	clock.Step(time.Minute)
	if err := client.Do(t.Context(), http.MethodGet, "/", nil, nil); err != nil {
		t.Error(err)
	}
}

// The client's certificate and the authority are replaced together, file by file: that
// the certificate has no key for a moment does not keep the authority from being used.
func TestTheClientsCertificateHasNoKeyYet(t *testing.T) {
	oldCA, _ := authority(t, "old")
	newCA, newServing := authority(t, "new")
	server := servedBy(t, newServing)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	issue := func(ca *pki.Pair) *pki.Pair {
		t.Helper()
		pair, err := ca.Issue(pki.Subject{CommonName: "client", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}, time.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(file(name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before, after := issue(oldCA), issue(newCA)
	write("ca.crt", oldCA.Cert)
	write("client.crt", before.Cert)
	write("client.key", before.Key)
	clock := testingclock.NewFakeClock(time.Now())
	client, err := newClient(&Config{Host: server.URL, CAFile: file("ca.crt"), CertFile: file("client.crt"), KeyFile: file("client.key")}, clock)
	if err != nil {
		t.Fatal(err)
	}
	ask := func() error {
		clock.Step(time.Minute)
		return client.Do(t.Context(), http.MethodGet, "/", nil, nil)
	}
	if err := ask(); err == nil {
		t.Fatal("the new authority is trusted before it is named")
	}
	write("ca.crt", newCA.Cert)
	write("client.crt", after.Cert)
	_ = ask() // whatever it presents
	write("client.key", after.Key)
	if err := ask(); err != nil {
		t.Error(err)
	}
}
