package bootstrap

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"kctl/kubectl/internal/certificates"
	"kctl/proto/pki"
)

// stranger is a server that a machine is told to join.
type stranger struct {
	*httptest.Server
	ca   *pki.Pair
	hash string
}

func (s *stranger) address() string { return s.Listener.Addr().String() }

// meet starts a stranger with a CA of its own. chain says whether it sends its certificate.
func meet(t *testing.T, chain bool, expires time.Duration, handler http.HandlerFunc) *stranger {
	t.Helper()
	ca, sent := authority(t, "ca", nil), []byte(nil)
	if chain {
		sent = ca.Cert
	}
	return meetOf(t, ca, sent, expires, handler)
}

// meetOf starts a stranger with a certificate of this CA, which sends these along.
func meetOf(t *testing.T, ca *pki.Pair, chain []byte, expires time.Duration, handler http.HandlerFunc) *stranger {
	t.Helper()
	serving, err := ca.Issue(pki.Subject{CommonName: "s", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Server: true}, time.Now().Add(-2*time.Hour), 2*time.Hour+expires)
	if err != nil {
		t.Fatal(err)
	}
	serving.Cert = append(serving.Cert, chain...)
	pair, err := serving.TLS()
	if err != nil {
		t.Fatal(err)
	}
	hashes, err := certificates.Hashes(ca.Cert)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.Config.ErrorLog = nil
	server.StartTLS()
	t.Cleanup(server.Close)
	return &stranger{server, ca, hashes[0]}
}

func info(server, ca string) string {
	config, _ := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "Config",
		"clusters": []any{map[string]any{"name": "", "cluster": map[string]any{"server": server, "certificate-authority-data": []byte(ca)}}}})
	object, _ := json.Marshal(&corev1.ConfigMap{Data: map[string]string{"kubeconfig": string(config)}})
	return string(object)
}

// A server is recognised by its CA's hash, and is sent nothing before that.
func TestServersAreKnownBeforeTheyAreToldAnything(t *testing.T) {
	told := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("a credential was sent")
		}
		w.WriteHeader(http.StatusUnauthorized)
	}
	other := "sha256:" + strings.Repeat("0", 64)
	var kubeadms *stranger
	kubeadms = meet(t, false, time.Hour, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, info(kubeadms.URL, string(kubeadms.ca.Cert)))
	})
	for name, test := range map[string]struct {
		server *stranger
		find   func(s *stranger) Discovery
		says   string
	}{
		"by its chain":        {meet(t, true, time.Hour, told), known, ""},
		"by its cluster-info": {kubeadms, known, ""},
		"unsafe":              {meet(t, true, time.Hour, told), func(s *stranger) Discovery { return Discovery{Server: s.address(), Unsafe: true} }, ""},
		"another's": {meet(t, true, time.Hour, told), func(s *stranger) Discovery { return Discovery{Server: s.address(), Hashes: []string{other}} },
			"The token was not sent"},
		"another's info": {kubeadms, func(s *stranger) Discovery { return Discovery{Server: s.address(), Hashes: []string{other}} }, "The token was not sent"},
		"no authority":   {meet(t, false, time.Hour, told), known, "presents no CA"},
		"a web page": {meet(t, false, time.Hour, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }), known,
			"check that it is an API server"},
		"expired":       {meet(t, true, -time.Hour, told), known, "set the clock, or renew"},
		"no hash":       {kubeadms, func(s *stranger) Discovery { return Discovery{Server: s.address()} }, "--discovery-token-ca-cert-hash is required"},
		"no sound hash": {kubeadms, func(s *stranger) Discovery { return Discovery{Server: s.address(), Hashes: []string{"sha256:x"}} }, "64 hexadecimal digits"},
		"no port":       {kubeadms, func(s *stranger) Discovery { return Discovery{Server: "127.0.0.1", Unsafe: true} }, "want HOST:PORT"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := test.find(test.server).Find(t.Context())
			if test.says != "" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("got %v, want %q", err, test.says)
				}
				return
			}
			if err != nil || string(found.CA) != string(test.server.ca.Cert) || found.Server != test.server.URL || found.Time.IsZero() {
				t.Errorf("got %+v, %v", found, err)
			}
		})
	}
}

func known(s *stranger) Discovery {
	return Discovery{Server: s.address(), Hashes: []string{s.hash}}
}

// authority makes a CA, signed by another one or by itself.
func authority(t *testing.T, name string, by *pki.Pair) *pki.Pair {
	t.Helper()
	ca, err := pki.NewCA(name, time.Now().Add(-3*time.Hour), 6*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if by == nil {
		return ca
	}
	pair, errPair := ca.TLS()
	signer, errSigner := by.TLS()
	if err := errors.Join(errPair, errSigner); err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, pair.Leaf, signer.Leaf, pair.Leaf.PublicKey, signer.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return &pki.Pair{Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: ca.Key}
}

// A server's certificate may come from an authority below the one that is known, and a cluster
// have two while one replaces the other: a machine then trusts both, once the server has shown
// that it is of the one that is known.
func TestAuthoritiesThatAreNotAlone(t *testing.T) {
	root, next := authority(t, "root", nil), authority(t, "next", nil)
	below := authority(t, "below", root)
	hash := func(ca *pki.Pair) string {
		hashes, err := certificates.Hashes(ca.Cert)
		if err != nil {
			t.Fatal(err)
		}
		return hashes[0]
	}
	join := func(cas ...*pki.Pair) (bundle []byte) {
		for _, ca := range cas {
			bundle = append(bundle, ca.Cert...)
		}
		return bundle
	}
	for name, test := range map[string]struct {
		by                *pki.Pair // the authority of the server
		chain, told, want []byte
		hashes            []string
		says              string
	}{
		"below the known":     {by: below, chain: join(below), told: join(root), hashes: []string{hash(root)}, want: join(root)},
		"below, all in chain": {by: below, chain: join(below, root), hashes: []string{hash(root)}, want: join(root)},
		"below is the known":  {by: below, chain: join(below, root), hashes: []string{hash(below)}, want: join(below)},
		"two are told":        {by: root, told: join(next, root), hashes: []string{hash(root)}, want: join(next, root)},
		"one is shown, one is told": {
			by: next, chain: join(next), told: join(root), hashes: []string{hash(next), hash(root)}, want: join(root, next),
		},
		"two are shown":        {by: root, chain: join(next, root), hashes: []string{hash(next), hash(root)}, want: join(next, root)},
		"the known is another": {by: next, chain: join(next), told: join(next, root), hashes: []string{hash(root)}, says: "unknown authority"},
	} {
		t.Run(name, func(t *testing.T) {
			s := meetOf(t, test.by, test.chain, time.Hour, func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, info("https://x:1", string(test.told)))
			})
			found, err := (Discovery{Server: s.address(), Hashes: test.hashes}).Find(t.Context())
			switch {
			case test.says != "":
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("got %v, want %q", err, test.says)
				}
			case err != nil:
				t.Error(err)
			case string(found.CA) != string(test.want):
				t.Errorf("it trusts\n%s, want\n%s", found.CA, test.want)
			}
		})
	}
}

// A server whose name is not in its certificate is not the right one.
func TestAServerByAnotherName(t *testing.T) {
	s := meet(t, true, time.Hour, http.NotFound)
	_, port, _ := net.SplitHostPort(s.address())
	if _, err := (Discovery{Server: "localhost:" + port, Hashes: []string{s.hash}}).Find(t.Context()); err == nil || !strings.Contains(err.Error(), "localhost") {
		t.Errorf("got %v", err)
	}
}

func TestServersThatDoNotAnswer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and sends nothing
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := (Discovery{Server: listener.Addr().String(), Unsafe: true}).Find(ctx); err == nil || !strings.Contains(err.Error(), "no answer within") {
		t.Errorf("got %v", err)
	}
	listener.Close()
	if _, err := (Discovery{Server: listener.Addr().String(), Unsafe: true}).Find(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v", err)
	}
}

func TestDiscoveryFile(t *testing.T) {
	s := meet(t, false, time.Hour, http.NotFound)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	write := func(server string, ca []byte) {
		data, err := certificates.NewKubeconfig(server, ca, "x", certificates.ByToken(""))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(s.URL, s.ca.Cert)
	if found, err := (Discovery{File: file}).Find(t.Context()); err != nil || found.Server != s.URL {
		t.Errorf("got %+v, %v", found, err)
	}
	if _, err := (Discovery{File: file, Server: "other:6443"}).Find(t.Context()); err == nil {
		t.Error("a file about another server")
	}
	write(s.URL, []byte("rubbish"))
	if _, err := (Discovery{File: file}).Find(t.Context()); err == nil || !strings.Contains(err.Error(), "it contains no CA") {
		t.Errorf("got %v", err)
	}
	write("http://127.0.0.1:1", s.ca.Cert)
	if _, err := (Discovery{File: file}).Find(t.Context()); err == nil || !strings.Contains(err.Error(), "want https://HOST:PORT") {
		t.Errorf("got %v", err)
	}
}
