package bench_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// fanOut is the least work that a create with watchers can be: an HTTPS server
// that puts each body into etcd and then writes it, unchanged, to all watchers.
// It parses and validates nothing, and keeps no history.
type fanOut struct {
	etcd *clientv3.Client
	size int // size of an event

	mu       sync.Mutex
	watchers map[chan []byte]struct{}
}

// startFanOut starts such a server over an etcd, with events of about the given
// size.
func startFanOut(b *testing.B, endpoint string, size int) *server {
	f := &fanOut{etcd: etcdClient(b, endpoint), size: size, watchers: map[chan []byte]struct{}{}}
	return startHandler(b, f)
}

// startHandler serves over HTTP/2 and TLS, as an API server does, until the
// benchmark ends.
func startHandler(b *testing.B, h http.Handler) *server {
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	b.Cleanup(s.Close)
	return &server{b: b, address: strings.TrimPrefix(s.URL, "https://")}
}

func (f *fanOut) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPost:
		f.create(w, r)
	case r.URL.Query().Has("watch"):
		f.watch(w, r)
	default:
		_, _ = io.WriteString(w, `{"metadata":{"resourceVersion":"1"}}`)
	}
}

func (f *fanOut) create(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client reports it
	}
	body = append(body, strings.Repeat(" ", max(0, f.size-len(body)))...)
	if _, err := f.etcd.Put(r.Context(), "/fanout", string(body)); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	event := []byte(`{"type":"ADDED","object":` + string(body) + "}\n")
	f.mu.Lock()
	for events := range f.watchers {
		events <- event
	}
	f.mu.Unlock()
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(body)
}

func (f *fanOut) watch(w http.ResponseWriter, r *http.Request) {
	events := make(chan []byte, watched) // room for all there will be
	f.mu.Lock()
	f.watchers[events] = struct{}{}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers, events)
	}()
	out := http.NewResponseController(w)
	_ = out.Flush()
	for {
		select {
		case event := <-events:
			_, _ = w.Write(event)
			_ = out.Flush()
		case <-r.Context().Done():
			return
		}
	}
}
