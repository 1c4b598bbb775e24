package rest

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"kctl/proto/pki"
)

// What is wrong with a kubeconfig that a program has in use is told to its operator once, and
// so is the end of the certificate in it.
func TestWhatIsWrongWithAKubeconfigIsTold(t *testing.T) {
	start := time.Now()
	ca, err := pki.NewCA("ca", start, 10*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue(pki.Subject{CommonName: "me", Client: true}, start, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	content := func(server, certificate string) string {
		return fmt.Sprintf("current-context: x\nclusters: [{name: x, cluster: {server: '%s', insecure-skip-tls-verify: true}}]\ncontexts: [{name: x, context: {cluster: x, user: x}}]\nusers: [{name: x, user: {client-certificate-data: %s, client-key-data: %s}}]\n",
			server, base64.StdEncoding.EncodeToString([]byte(certificate)), base64.StdEncoding.EncodeToString(pair.Key))
	}
	good := content(server.URL, string(pair.Cert))
	path := filepath.Join(t.TempDir(), "kubeconfig")
	writeAt(t, path, good, start)
	config, err := LoadKubeconfig(path)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	config.Told = func(err error) { told = append(told, err.Error()) }
	clock := testclock.NewFakeClock(start)
	client, err := newClient(config, clock)
	if err != nil {
		t.Fatal(err)
	}
	defer client.HTTP().CloseIdleConnections()
	modified := start
	for _, step := range []struct {
		name, content string
		after         time.Duration
		want          string // "" for nothing
	}{
		{"well", good, 0, ""},
		{"rubbish", "rubbish", 0, "changed files are not taken"},
		{"well again", good, 0, ""},
		{"rubbish again", "rubbish", 0, "changed files are not taken"},
		{"no certificate", content(server.URL, "none"), 0, "client certificate in kubeconfig " + path},
		{"another server", content("https://localhost:1", string(pair.Cert)), 0, "names another server, https://localhost:1"},
		{"expired", good, 2 * time.Hour, "client certificate in kubeconfig " + path + " has expired"},
	} {
		modified = modified.Add(time.Second)
		writeAt(t, path, step.content, modified)
		clock.Step(step.after)
		told = nil
		for range 2 {
			client.HTTP().CloseIdleConnections()
			if err := client.Do(t.Context(), http.MethodGet, "/", nil, nil); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
		}
		if step.want == "" && len(told) != 0 || step.want != "" && (len(told) != 1 || !strings.Contains(told[0], step.want)) {
			t.Errorf("%s: told %q, want %q", step.name, told, step.want)
		}
	}
}

// So is what is wrong with files that a kubeconfig names.
func TestWhatIsWrongWithFilesOfCredentialsIsTold(t *testing.T) {
	start, dir := time.Now(), t.TempDir()
	ca, err := pki.NewCA("ca", start, 10*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue(pki.Subject{CommonName: "me", Client: true}, start, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key, authorities := filepath.Join(dir, "me.crt"), filepath.Join(dir, "me.key"), filepath.Join(dir, "ca.crt")
	if err := pair.Save(certificate, key); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	writeAt(t, authorities, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})), start)
	var told []string
	clock := testclock.NewFakeClock(start)
	client, err := newClient(&Config{Host: server.URL, CertFile: certificate, KeyFile: key, CAFile: authorities,
		Told: func(err error) { told = append(told, err.Error()) }}, clock)
	if err != nil {
		t.Fatal(err)
	}
	defer client.HTTP().CloseIdleConnections()
	if len(told) != 0 {
		t.Errorf("at first: told %q", told)
	}
	writeAt(t, authorities, "rubbish", start.Add(time.Second))
	clock.Step(2 * time.Hour)
	if err := client.Do(t.Context(), http.MethodGet, "/", nil, nil); err != nil {
		t.Fatal(err)
	}
	said := strings.Join(told, "\n")
	if len(told) != 2 || !strings.Contains(said, authorities+": no PEM certificate in it") || !strings.Contains(said, "certificate "+certificate+" has expired") {
		t.Errorf("of rubbish for authorities and an expired certificate: told %q", told)
	}
}
