package kubeconfig

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestSecretsGoToVerifiedServers: whichever way a user has a secret, another server of the cluster gets it only
// where servers are verified, and never in clear text.
func TestSecretsGoToVerifiedServers(t *testing.T) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%q", r.Header.Get("Authorization"))
	})
	server, clear := httptest.NewTLSServer(echo), httptest.NewServer(echo)
	defer server.Close()
	defer clear.Close()
	dir := t.TempDir()
	authority, plugin, token := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "plugin"), filepath.Join(dir, "token")
	credential := `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"secret"}}`
	for file, text := range map[string]string{
		authority: string(pemOf(server)), plugin: "#!/bin/sh\necho '" + credential + "'\n", token: "secret",
	} {
		if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, user := range map[string]*clientcmdapi.AuthInfo{
		"a token":    {Token: "secret"},
		"a file":     {TokenFile: token},
		"a password": {Username: "jane", Password: "secret"},
		"a plugin": {Exec: &clientcmdapi.ExecConfig{
			Command: plugin, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		}},
		"OpenID": {AuthProvider: &clientcmdapi.AuthProviderConfig{Name: "oidc", Config: map[string]string{
			"idp-issuer-url": server.URL, "client-id": "me", "id-token": idToken("secret", 1<<40),
		}}},
	} {
		for _, test := range []struct {
			verified bool
			asked    string
			sent     bool
		}{{true, server.URL, true}, {false, server.URL, false}, {true, clear.URL, false}} {
			config := clientcmdapi.NewConfig()
			config.CurrentContext = "c"
			config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
			config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1", InsecureSkipTLSVerify: true}
			if test.verified {
				config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1", CertificateAuthority: authority}
			}
			config.AuthInfos["u"] = user
			file := filepath.Join(t.TempDir(), "config")
			if err := clientcmd.WriteToFile(*config, file); err != nil {
				t.Fatal(err)
			}
			target, err := (&Flags{File: file}).Load()
			if err != nil {
				t.Fatal(err)
			}
			client, err := target.At(test.asked).Rest(nil)
			if err != nil {
				t.Fatal(err)
			}
			var sent string
			if err := client.Do(t.Context(), http.MethodGet, "/", nil, &sent); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if (sent != "") != test.sent {
				t.Errorf("%s, verified %t, to %s: %q was sent", name, test.verified, test.asked, sent)
			}
		}
	}
}
