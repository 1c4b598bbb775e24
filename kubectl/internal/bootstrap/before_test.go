package bootstrap

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kctl/proto/pki"
)

// Joining again, as to change the network, needs no --node-name: with the certificate of another
// node, the kubelet would be refused.
func TestANodeKeepsItsName(t *testing.T) {
	server := meet(t, true, time.Hour, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	for _, test := range []struct{ holder, named, node, err string }{
		{"system:node:other", "", "other", ""},
		{"system:node:other", "other", "other", ""},
		{"system:node:other", "wanted", "", "has joined as node other, which differs from --node-name=wanted: `kctl reset`"},
		{"somebody", "wanted", "wanted", ""},
	} {
		n := Node{Dir: t.TempDir(), RootDir: t.TempDir(), Runtime: "unix:///none", Port: 1}
		pair, err := pki.SelfSigned(pki.Subject{CommonName: test.holder}, time.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		encode := base64.StdEncoding.EncodeToString
		kubeconfig := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: 'https://" + server.address() +
			"'}}]\nusers: [{name: u, user: {client-certificate-data: " + encode(pair.Cert) + ", client-key-data: " + encode(pair.Key) +
			"}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
		if err := os.WriteFile(n.Kubeconfig(), []byte(kubeconfig), 0o600); err != nil {
			t.Fatal(err)
		}
		joined, err := Join(t.Context(), Options{
			Discovery: Discovery{Server: server.address(), Hashes: []string{server.hash}}, Token: NewToken().String(), Node: n,
			NodeName: test.named, Ignore: []string{"all"}, Now: time.Now(),
		})
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%+v: %v", test, err)
			}
			if _, err := os.Stat(filepath.Join(n.Dir, "kubelet.yaml")); err == nil {
				t.Errorf("%+v: files were written", test)
			}
			continue
		}
		if err != nil || joined.Node != test.node || !slices.Contains(joined.Args, "--hostname-override="+test.node) {
			t.Errorf("%+v: %+v, %v", test, joined, err)
		}
	}
}
