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
	"strings"
	"sync/atomic"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"kctl/proto/pki"
)

// authority makes a certificate authority and a serving certificate of it.
func authority(t *testing.T, name string) (ca *pki.Pair, serving *tls.Certificate) {
	t.Helper()
	ca, err := pki.NewCA(name, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue(pki.Subject{CommonName: "server", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Server: true}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	return ca, &cert
}

// The authority of a server is replaced while a client runs: first both are
// trusted, then the server shows a certificate of the new one.
func TestTheServersAuthorityIsReplaced(t *testing.T) {
	inline := func(ca []byte) string { return "certificate-authority-data: " + base64.StdEncoding.EncodeToString(ca) }
	for name, c := range map[string]struct {
		cluster func(ca []byte) string // what the kubeconfig says of the authority
		file    bool                   // the authority is in a file beside it
	}{
		"in the kubeconfig":   {cluster: inline},
		"in a file beside it": {cluster: func([]byte) string { return "certificate-authority: ca.crt" }, file: true},
	} {
		t.Run(name, func(t *testing.T) {
			oldCA, oldServing := authority(t, "old")
			newCA, newServing := authority(t, "new")
			var serving atomic.Pointer[tls.Certificate]
			serving.Store(oldServing)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "{}") }))
			server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
				return &tls.Config{Certificates: []tls.Certificate{*serving.Load()}}, nil
			}}
			server.StartTLS()
			defer server.Close()

			dir := t.TempDir()
			write := func(modified time.Time, ca ...string) {
				t.Helper()
				all := strings.Join(ca, "")
				writeAt(t, filepath.Join(dir, "ca.crt"), all, modified)
				writeAt(t, filepath.Join(dir, "kubeconfig"),
					fmt.Sprintf("current-context: x\nclusters: [{name: x, cluster: {server: '%s', %s}}]\ncontexts: [{name: x, context: {cluster: x}}]\n",
						server.URL, c.cluster([]byte(all))), modified)
			}
			write(time.Now().Add(-time.Hour), string(oldCA.Cert))
			config, err := LoadKubeconfig(filepath.Join(dir, "kubeconfig"))
			if err != nil {
				t.Fatal(err)
			}
			clock := testingclock.NewFakeClock(time.Now())
			client, err := newClient(config, clock)
			if err != nil {
				t.Fatal(err)
			}
			ask := func() error {
				clock.Step(time.Minute) // files of authorities are not looked at all the time
				client.Reconnect()
				return client.Do(t.Context(), http.MethodGet, "/", nil, nil)
			}
			if err := ask(); err != nil {
				t.Fatal(err)
			}
			serving.Store(newServing)
			if err := ask(); err == nil {
				t.Fatal("an authority is trusted that nobody has named")
			}
			write(time.Now(), string(newCA.Cert), string(oldCA.Cert))
			if err := ask(); err != nil {
				t.Errorf("the new authority: %v", err)
			}
			serving.Store(oldServing)
			if err := ask(); err != nil {
				t.Errorf("the old authority, while both are trusted: %v", err)
			}
			write(time.Now().Add(time.Hour), "rubbish")
			if err := ask(); err != nil {
				t.Errorf("with rubbish in the file: %v", err)
			}
		})
	}
}

// writeAt writes a file as if it had been modified at a time.
func writeAt(t *testing.T, file, content string, modified time.Time) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, modified, modified); err != nil {
		t.Fatal(err)
	}
}
