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
		return fmt.Sprintf("current-context: x\nclusters: [{name: x, cluster: {server: '%s', insecure-skip-tls-verify: true}}]\ncontexts: [{name: x, context: "+
			"{cluster: x, user: x}}]\nusers: [{name: x, user: {client-certificate-data: %s, client-key-data: %s}}]\n",
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
	config.OnFileProblem = func(err error) { told = append(told, err.Error()) }
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
		{"rubbish", "rubbish", 0, "changed files were rejected"},
		{"well again", good, 0, ""},
		{"rubbish again", "rubbish", 0, "changed files were rejected"},
		{"no certificate", content(server.URL, "none"), 0, "kubeconfig " + path + ": client certificate: "},
		{"another server", content("https://me:secret@localhost:1", string(pair.Cert)), 0, "names another server, https://localhost:1"},
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
	client, err := newClient(&Config{
		Host: server.URL, CertFile: certificate, KeyFile: key, CAFile: authorities, OnFileProblem: func(err error) { told = append(told, err.Error()) },
	}, clock)
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

// A certificate in a kubeconfig whose key is in a file of its own is followed like others.
func TestAKeyBesideAKubeconfigIsFollowed(t *testing.T) {
	start, dir := time.Now(), t.TempDir()
	shown := ""
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		shown = r.TLS.PeerCertificates[0].Subject.CommonName
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	path, key := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "key")
	var client *Client
	var told []string
	for i, name := range []string{"first", "second"} {
		pair, err := pki.SelfSigned(pki.Subject{CommonName: name, Client: true}, start, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		modified := start.Add(time.Duration(i) * time.Second)
		writeAt(t, key, string(pair.Key), modified)
		writeAt(t, path,
			fmt.Sprintf("current-context: x\nclusters: [{name: x, cluster: {server: '%s', insecure-skip-tls-verify: true}}]\ncontexts: [{name: x, context: {cluster: "+
				"x, user: x}}]\nusers: [{name: x, user: {client-certificate-data: %s, client-key: key}}]\n",
				server.URL, base64.StdEncoding.EncodeToString(pair.Cert)), modified)
		if client == nil {
			config, err := LoadKubeconfig(path)
			if err != nil {
				t.Fatal(err)
			}
			config.OnFileProblem = func(err error) { told = append(told, err.Error()) }
			if client, err = New(config); err != nil {
				t.Fatal(err)
			}
		}
		client.HTTP().CloseIdleConnections()
		if err := client.Do(t.Context(), http.MethodGet, "/", nil, nil); err != nil {
			t.Fatal(err)
		}
		if shown != name || len(told) != 0 {
			t.Errorf("showed %s instead of %s, and told %q", shown, name, told)
		}
	}
	client.HTTP().CloseIdleConnections()
}

// Authorities in a kubeconfig that are none, or that are no longer there, stay as they were.
func TestAuthoritiesThatAKubeconfigLosesAreTold(t *testing.T) {
	start := time.Now()
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	content := func(field string) string {
		return fmt.Sprintf("current-context: x\nclusters: [{name: x, cluster: {%s server: '%s'}}]\ncontexts: [{name: x, context: {cluster: x}}]\n", field, server.URL)
	}
	data := func(authorities []byte) string {
		return "certificate-authority-data: " + base64.StdEncoding.EncodeToString(authorities) + ","
	}
	good := content(data(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	path := filepath.Join(t.TempDir(), "kubeconfig")
	writeAt(t, path, good, start)
	config, err := LoadKubeconfig(path)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	config.OnFileProblem = func(err error) { told = append(told, err.Error()) }
	clock := testclock.NewFakeClock(start)
	client, err := newClient(config, clock)
	if err != nil {
		t.Fatal(err)
	}
	defer client.HTTP().CloseIdleConnections()
	want := 0
	for i, now := range []string{content(data([]byte("none"))), good, content("")} {
		writeAt(t, path, now, start.Add(time.Duration(i+1)*time.Second))
		for range 2 {
			clock.Step(time.Second)
			if err := client.Do(t.Context(), http.MethodGet, "/", nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		if now != good {
			want++
		}
		if len(told) != want || want > 0 && !strings.Contains(told[want-1], "kubeconfig "+path+": certificate authority: ") {
			t.Errorf("of %q: told %q", now, told)
		}
	}
}
