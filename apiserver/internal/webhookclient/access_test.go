package webhookclient

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"kctl/proto/pki"
)

func kubeconfig(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte("apiVersion: v1\nkind: Config\n"+content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCredentials: the longest name that fits decides, one with a port before those without.
func TestCredentials(t *testing.T) {
	users := "users:\n"
	for _, name := range []string{"a.b.svc", "a.b.svc:8443", "*.b.svc", "*.svc", "*.svc:443", "*.example.com:9443", "plain"} {
		users += "- {name: '" + name + "', user: {token: '" + name + "'}}\n"
	}
	const named, anybody = "current-context: c\ncontexts: [{name: c, context: {user: plain}}]\n", "- {name: '*', user: {token: '*'}}\n"
	for _, test := range []struct{ config, host, port, want string }{
		{users, "a.b.svc", "443", "*.svc:443"}, // as in upstream: every name with the port comes first
		{users, "a.b.svc", "8443", "a.b.svc:8443"},
		{strings.Replace(users, "*.svc:443", "other", 1), "a.b.svc", "443", "a.b.svc"},
		{strings.Replace(users, "*.svc:443", "other", 1), "c.b.svc", "443", "*.b.svc"},
		{strings.Replace(users, "*.svc:443", "other", 1), "c.d.svc", "443", "*.svc"},
		{users, "c.b.svc", "8443", ""},
		{users, "hook.shop.example.com", "9443", "*.example.com:9443"},
		{users, "example.com", "9443", ""},
		{users, "elsewhere.org", "443", ""},
		{users + anybody, "elsewhere.org", "443", "*"},
		{users + named, "elsewhere.org", "443", "plain"},
		{users + anybody + named, "elsewhere.org", "443", "*"},
	} {
		credentials, err := LoadCredentials(kubeconfig(t, test.config), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := credentials.of(test.host, test.port).BearerToken; got != test.want {
			t.Errorf("%s:%s is shown %q, want %q", test.host, test.port, got, test.want)
		}
	}
	if got := (*Credentials)(nil).of("a", "443"); got.BearerToken != "" {
		t.Errorf("without credentials: %+v", got)
	}
}

// TestCredentialsThatCannotBeUsed are found when the file is read, not when a webhook is called.
func TestCredentialsThatCannotBeUsed(t *testing.T) {
	for config, want := range map[string]string{
		"users: [{name: u, user: {exec: {command: x}}}]\n":                                 "exec credential plugins are not supported",
		"users: [{name: u, user: {as: jane}}]\n":                                           "impersonation (as) is not supported",
		"users: [{name: u, user: {username: a, password: b, token: c}}]\n":                 "not both",
		"users: [{name: u, user: {client-certificate: /none, client-key: /none}}]\n":       "no such file",
		"users: [{name: u, user: {client-certificate-data: eA==, client-key-data: eA==}}]": "client certificate",
		"users: [{name: u\n": "kubeconfig",
	} {
		if _, err := LoadCredentials(kubeconfig(t, config), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", config, err, want)
		}
	}
	if _, err := LoadCredentials("/none", nil); err == nil {
		t.Error("a file that is missing is accepted")
	}
}

// TestClientCertificates: a certificate is presented to the webhook that it is for.
func TestClientCertificates(t *testing.T) {
	ca, err := pki.NewCA("hooks", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue(pki.Subject{CommonName: "api", Client: true}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown := "nothing"
		if len(r.TLS.PeerCertificates) > 0 {
			shown = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		_, _ = io.WriteString(w, shown)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for user, want := range map[string]string{server.Listener.Addr().String(): "api", "*.example.com": "nothing"} {
		credentials, err := LoadCredentials(kubeconfig(t, fmt.Sprintf("users: [{name: %q, user: {client-certificate-data: %s, client-key-data: %s}}]\n",
			user, base64.StdEncoding.EncodeToString(pair.Cert), base64.StdEncoding.EncodeToString(pair.Key))), nil)
		if err != nil {
			t.Fatal(err)
		}
		client := NewClient(&admissionregistrationv1.WebhookClientConfig{URL: &server.URL, CABundle: authority}, Access{Credentials: credentials},
			ClientOptions{Timeout: time.Minute, MaxAnswer: 1 << 10})
		t.Cleanup(client.Close)
		if shown, err := client.Post(t.Context(), []byte("{}")); err != nil || string(shown) != want {
			t.Errorf("with a certificate for %s it was shown %s, %v", user, shown, err)
		}
	}
}

// TestAnExpiredCertificateIsToldOnce, however many webhooks it is shown to.
func TestAnExpiredCertificateIsToldOnce(t *testing.T) {
	pair, err := pki.SelfSigned(pki.Subject{CommonName: "api", Client: true}, time.Now().AddDate(0, 0, -1), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := pair.Save(filepath.Join(dir, "api.crt"), filepath.Join(dir, "api.key")); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "{}")
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	var told []string
	credentials, err := LoadCredentials(kubeconfig(t, fmt.Sprintf("users: [{name: '*', user: {client-certificate: %s/api.crt, client-key: %s/api.key}}]\n",
		dir, dir)),
		func(err error) { told = append(told, err.Error()) })
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		client := NewClient(&admissionregistrationv1.WebhookClientConfig{URL: &server.URL, CABundle: authority}, Access{Credentials: credentials},
			ClientOptions{Timeout: time.Minute, MaxAnswer: 1 << 10})
		t.Cleanup(client.Close)
		if _, err := client.Post(t.Context(), []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if len(told) != 1 || !strings.Contains(told[0], "has expired") {
		t.Errorf("told %q, want once that it has expired", told)
	}
}
