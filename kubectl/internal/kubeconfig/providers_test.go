package kubeconfig

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// idToken is a token that ends at a second since 1970.
func idToken(name string, end int64) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode(fmt.Appendf(nil, `{"sub":%q,"exp":%d}`, name, end)) + "." + encode([]byte(name))
}

func pemOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// A user of an OpenID provider has an expired token renewed, and the new one kept in the
// kubeconfig.
func TestTokensOfOpenIDAreRenewed(t *testing.T) {
	old, renewed := idToken("old", 1), idToken("renewed", 1<<40)
	mux := http.NewServeMux()
	issuer := httptest.NewTLSServer(mux)
	defer issuer.Close()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"token_endpoint":%q}`, issuer.URL, issuer.URL+"/token")
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("refresh_token") != "again" {
			http.Error(w, "no refresh token", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "x", "token_type": "Bearer", "refresh_token": "again", "id_token": renewed})
	})
	mux.HandleFunc("/version", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%q", r.Header.Get("Authorization")) })
	authority := pemOf(issuer)
	file := filepath.Join(t.TempDir(), "config")
	config := clientcmdapi.NewConfig()
	config.CurrentContext = "c"
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: issuer.URL, CertificateAuthorityData: authority}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{AuthProvider: &clientcmdapi.AuthProviderConfig{Name: "oidc", Config: map[string]string{
		"idp-issuer-url": issuer.URL, "client-id": "me", "id-token": old, "refresh-token": "again",
		"idp-certificate-authority-data": base64.StdEncoding.EncodeToString(authority),
	}}}
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	target, err := (&Flags{File: file}).Load()
	if err != nil {
		t.Fatal(err)
	}
	client, err := target.Rest(nil)
	if err != nil {
		t.Fatal(err)
	}
	var sent string
	if err := client.Do(t.Context(), http.MethodGet, "/version", nil, &sent); err != nil || sent != "Bearer "+renewed {
		t.Errorf("the server got %q, %v", sent, err)
	}
	if kept, err := os.ReadFile(file); err != nil || !strings.Contains(string(kept), renewed) {
		t.Errorf("the kubeconfig has no new token: %v\n%s", err, kept)
	}
}
