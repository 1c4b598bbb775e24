package extensions

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/pki"
)

// extension is an extension API server, which serves things in far.example.com.
type extension struct {
	*httptest.Server
	proxies *x509.CertPool // the CA of clients that may name the user
	reviews http.Handler   // answers webhooks' requests; nil if it has none

	mu      sync.Mutex
	mode    string // how it misbehaves; "" for not at all
	things  map[string]map[string]any
	ending  int         // number of things in the namespace ending
	holds   bool        // whether they can't be deleted
	seen    http.Header // header of the last request for things
	proxy   string      // what its certificate names
	events  chan string
	gadgets *gadgets
}

// startExtension starts one with a certificate of ca for the service far in
// default. It trusts clients with certificates of proxies.
func startExtension(t *testing.T, ca, proxies *pki.Pair) *extension {
	t.Helper()
	pair, err := ca.Issue(pki.Subject{CommonName: "far", DNSNames: []string{"far.default.svc"}, Server: true}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	e := &extension{proxies: x509.NewCertPool(), things: map[string]map[string]any{}, events: make(chan string, 16)}
	e.gadgets = &gadgets{objects: map[string]*metav1.PartialObjectMetadata{}, watchers: map[chan string]bool{}}
	e.proxies.AppendCertsFromPEM(proxies.Cert)
	e.Server = httptest.NewUnstartedServer(e)
	e.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequestClientCert}
	e.EnableHTTP2 = true
	// The API server still watches when the extension ends, which waits for its
	// requests.
	ctx, end := context.WithCancel(context.Background())
	e.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	e.StartTLS()
	t.Cleanup(func() {
		end()
		e.Close()
	})
	return e
}

func (e *extension) misbehave(mode string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mode = mode
}

// reviewsPath is where an extension serves webhooks.
const reviewsPath = "/apis/far.example.com/v1/reviews"

func (e *extension) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(r.TLS.PeerCertificates) == 0 {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	if _, err := r.TLS.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: e.proxies, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	e.mu.Lock()
	mode := e.mode
	e.mu.Unlock()
	w.Header().Set("Access-Control-Allow-Origin", "*")
	const collection = "/apis/far.example.com/v1/namespaces/default/things"
	switch path := strings.TrimSuffix(r.URL.Path, "/"); {
	case mode == "broken":
		http.Error(w, "broken", http.StatusInternalServerError)
	case mode == "lying" && path == "/apis":
		_, _ = io.WriteString(w, "<html>"+strings.Repeat("x", 1<<20))
	case mode == "slow" && path == "/apis":
		<-r.Context().Done()
	case path == "/apis" && mode != "plain":
		e.discover(w, r)
	case path == "/apis/far.example.com/v1":
		writeJSON(w, map[string]any{"kind": "APIResourceList", "groupVersion": "far.example.com/v1", "resources": []any{
			map[string]any{"name": "things", "singularName": "thing", "namespaced": true, "kind": "Thing", "verbs": []string{"create", "get", "list", "watch"}},
			map[string]any{"name": "things/echo", "namespaced": true, "kind": "Thing", "verbs": []string{"get"}},
		}})
	case path == "/openapi/v3" && mode != "plain":
		writeJSON(w,
			map[string]any{"paths": map[string]any{"apis/far.example.com/v1": map[string]any{"serverRelativeURL": "/openapi/v3/apis/far.example.com/v1?hash=ABC"}}})
	case path == "/openapi/v3/apis/far.example.com/v1":
		writeJSON(w, map[string]any{"openapi": "3.0.0", "info": map[string]any{"title": "far"}})
	case path == "/openapi/v2" && mode != "plain":
		writeJSON(w, map[string]any{
			"swagger": "2.0", "definitions": map[string]any{"com.example.Thing": map[string]any{"type": "object"}},
			"paths": map[string]any{collection: map[string]any{"get": map[string]any{"responses": map[string]any{"200": map[string]any{
				"description": "OK", "schema": map[string]any{"$ref": "#/definitions/com.example.Thing"},
			}}}}},
		})
	case strings.HasPrefix(path, reviewsPath) && e.reviews != nil:
		http.StripPrefix(reviewsPath, e.reviews).ServeHTTP(w, r)
	case path == collection+"/w/echo":
		websocket.Handler(func(c *websocket.Conn) { _, _ = io.Copy(c, c) }).ServeHTTP(w, r)
	case path == collection+"/w/elsewhere":
		http.Redirect(w, r, "https://elsewhere.example.com/", http.StatusFound)
	case strings.HasPrefix(path, collection):
		e.serveThings(w, r, strings.TrimPrefix(strings.TrimPrefix(path, collection), "/"))
	case strings.HasSuffix(path, "/things"):
		e.serveEnding(w, r)
	case strings.Contains(path, "/gadgets"):
		e.gadgets.serve(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (e *extension) discover(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList") || r.Header.Get("X-Remote-User") != "system:kube-aggregator" {
		http.Error(w, "not asked for", http.StatusNotAcceptable)
		return
	}
	w.Header().Set("ETag", `"1"`)
	if r.Header.Get("If-None-Match") == `"1"` {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	thing := map[string]any{"group": "far.example.com", "version": "v1", "kind": "Thing"}
	gadget := map[string]any{"group": "far.example.com", "version": "v1", "kind": "Gadget"}
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": []any{map[string]any{
		"metadata": map[string]any{"name": "far.example.com"},
		"versions": []any{map[string]any{"version": "v1", "freshness": "Current", "resources": []any{map[string]any{
			"resource": "things", "singularResource": "thing", "scope": "Namespaced", "responseKind": thing,
			"verbs": []string{"create", "get", "list", "watch", "deletecollection"},
		}, map[string]any{
			"resource": "gadgets", "singularResource": "gadget", "scope": "Namespaced", "responseKind": gadget,
			"verbs": []string{"get", "list", "watch", "patch", "delete"},
		}}}},
	}}})
}

func (e *extension) serveThings(w http.ResponseWriter, r *http.Request, name string) {
	e.mu.Lock()
	e.seen = r.Header.Clone()
	e.proxy = r.TLS.PeerCertificates[0].Subject.CommonName
	e.mu.Unlock()
	switch {
	case r.Method == http.MethodPost:
		var thing map[string]any
		if err := json.NewDecoder(r.Body).Decode(&thing); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		e.mu.Lock()
		e.things[thing["metadata"].(map[string]any)["name"].(string)] = thing
		e.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(thing)
	case r.URL.Query().Get("watch") != "":
		w.Header().Set("Content-Type", "application/json")
		for {
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return
			case event := <-e.events:
				_, _ = io.WriteString(w, event+"\n")
			}
		}
	case name != "":
		e.mu.Lock()
		thing := e.things[name]
		e.mu.Unlock()
		writeJSON(w, thing)
	default:
		writeJSON(w, map[string]any{"kind": "ThingList", "apiVersion": "far.example.com/v1", "items": []any{}})
	}
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}
