package aggregation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/admission/lookup"
	"kctl/apiserver/internal/registry/registrytest"
	"kctl/apiserver/internal/rotation"
	"kctl/proto/core"
)

// aggregated is an Aggregator of one server with these resources, in memory.
func aggregated(t *testing.T, server http.Handler, resources ...apidiscoveryv2.APIResourceDiscovery) *Aggregator {
	t.Helper()
	connections := make(pipes)
	served := &http.Server{Handler: server}
	done := make(chan struct{})
	go func() { defer close(done); _ = served.Serve(connections) }()
	transport := &http.Transport{DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		here, there := net.Pipe()
		select {
		case connections <- there:
			return here, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = served.Close()
		<-done
	})
	gv := schema.GroupVersion{Group: "far.example.com", Version: "v1"}
	r := &remote{GroupVersion: gv, service: serviceName{"b", "far", 443}, requestTransport: rotation.New(transport, nil)}
	r.documents.discovery, r.documents.fresh = &apidiscoveryv2.APIVersionDiscovery{Version: "v1", Resources: resources}, true
	r.available.Store(true)
	a := &Aggregator{services: lookup.New[*corev1.Service](registrytest.NewNamed(core.Services, map[string]core.Object{
		"far": &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "far.example.com"}},
	}))}
	a.remotes.Store(&map[schema.GroupVersion]*remote{gv: r})
	return a
}

// pipes are connections that are to be served.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

func namespaced(name string, verbs ...string) apidiscoveryv2.APIResourceDiscovery {
	return apidiscoveryv2.APIResourceDiscovery{Resource: name, Scope: apidiscoveryv2.ScopeNamespace, Verbs: verbs}
}

// manyThings has things in a namespace; it deletes them together slowly, or each at once, and lists no more than it is asked for.
type manyThings struct {
	t      *testing.T
	left   map[string]bool
	slow   time.Duration
	listed atomic.Int32
}

func (m *manyThings) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rest, ok := strings.CutPrefix(r.URL.Path, "/apis/far.example.com/v1/namespaces/ending/things")
	if !ok {
		m.t.Errorf("asked for %s", r.URL.Path)
	}
	switch {
	case r.Method == http.MethodDelete && rest == "":
		select {
		case <-time.After(m.slow):
			clear(m.left)
		case <-r.Context().Done():
		}
	case r.Method == http.MethodDelete:
		delete(m.left, rest[1:])
	default:
		m.listed.Add(1)
		m.list(w, r)
		return
	}
	_, _ = w.Write([]byte("{}"))
}

func (m *manyThings) list(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
		m.t.Errorf("asked for %s", r.Header.Get("Accept"))
	}
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	list := metav1.PartialObjectMetadataList{}
	for i := from; i < 1200; i++ {
		if len(list.Items) == limit {
			list.Continue = strconv.Itoa(i)
			break
		}
		if name := fmt.Sprint("thing-", i); m.left[name] {
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"a/b"}}})
		}
	}
	_ = json.NewEncoder(w).Encode(&list)
}

// TestNamespacesOfManyObjects: it may take long to delete all objects together, and they are listed in pages.
func TestNamespacesOfManyObjects(t *testing.T) {
	for name, c := range map[string]struct {
		verbs string
		slow  time.Duration
		lists int32
		stay  int
		fails error
	}{
		"slowly":      {"deletecollection list", 30 * time.Second, 1, 0, nil},
		"too slowly":  {"deletecollection list", time.Hour, 0, 0, context.DeadlineExceeded},
		"one by one":  {"delete list", 0, 4, 0, nil},
		"not deleted": {"list", 0, 3, 1200, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &manyThings{t: t, left: map[string]bool{}, slow: c.slow}
				for i := range 1200 {
					server.left[fmt.Sprint("thing-", i)] = true
				}
				resources := []apidiscoveryv2.APIResourceDiscovery{namespaced("things", strings.Fields(c.verbs)...)}
				if c.fails != nil { // then it is not asked for more
					resources = append(resources, namespaced("others", "list"))
				}
				a := aggregated(t, server, resources...)
				stay := 0
				undiscovered, failures := a.EmptyNamespace(t.Context(), "ending", func(of schema.GroupResource, finalizers []string) {
					if stay++; of.Resource != "things" || len(finalizers) != 1 {
						t.Errorf("%s with %v", of, finalizers)
					}
				})
				if len(undiscovered) > 0 || stay != c.stay || server.listed.Load() != c.lists || !errors.Is(errors.Join(failures...), c.fails) {
					t.Errorf("%d stay, after %d lists: %v, %v", stay, server.listed.Load(), failures, undiscovered)
				}
			})
		})
	}
}
