package backend

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	testclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
	"kctl/apiserver/internal/storage/measured"
	"kctl/proto/eventually"
)

func open(t *testing.T, clock *testclock.FakeClock, logger *zap.Logger, servers ...string) *Backend {
	t.Helper()
	o := config.Defaults()
	o.DataDir, o.EtcdServers, o.EtcdCheckTimeout = t.TempDir(), servers, 100*time.Millisecond
	b, err := Open(t.Context(), Options{Flags: o, Metrics: measured.NewMetrics(prometheus.NewRegistry()), Clock: clock, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// Without a flag that names an etcd, the server embeds one.
func TestEmbedded(t *testing.T) {
	b := open(t, testclock.NewFakeClock(time.Now()), zap.NewNop())
	if err := b.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Storage.Create(t.Context(), "/registry/pods/default/web", []byte(`{"metadata":{}}`), 0); err != nil {
		t.Error(err)
	}
	if families, err := b.Metrics.Gather(); err != nil || len(families) == 0 {
		t.Errorf("%d metrics of etcd's own (%v)", len(families), err)
	}
}

// counted counts reads of single keys.
type counted struct {
	storage.Interface
	gets atomic.Int32
}

func (c *counted) Get(ctx context.Context, key string) (storage.Object, error) {
	c.gets.Add(1)
	return c.Interface.Get(ctx, key)
}

// Anybody may ask for the server's health as often as he likes.
func TestChecksShareAnAnswer(t *testing.T) {
	clock := testclock.NewFakeClock(time.Now())
	b := open(t, clock, zap.NewNop())
	store := &counted{Interface: b.Storage}
	b.Storage = store
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Check(gone); err != nil {
		t.Errorf("whoever asks first and leaves decides for all: %v", err)
	}
	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() {
			if err := b.Check(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	if gets := store.gets.Load(); gets != 1 {
		t.Errorf("%d reads of etcd", gets)
	}
	clock.Step(b.flags.EtcdCheckTimeout / 2)
	if err := b.Check(t.Context()); err != nil || store.gets.Load() != 2 {
		t.Errorf("an old answer: %v after %d reads", err, store.gets.Load())
	}
}

// An etcd on the same machine may listen on a socket; if nobody listens there,
// the error says so.
func TestSocket(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "etcd.sock") // where the embedded etcd listens
	core, log := observer.New(zap.WarnLevel)
	clock := testclock.NewFakeClock(time.Now())
	b := open(t, clock, zap.New(core), "unix://"+socket)
	ended := make(chan error, 1)
	go func() { ended <- b.Wait(t.Context()) }()
	eventually.Holds(t, "it is said that nothing listens", func() bool {
		return strings.Contains(last(said(log)), socket+": connect: no such file")
	})
	etcdtest.StartIn(t, dir)
	eventually.Holds(t, "etcd is found", func() bool {
		clock.Step(2 * waitPolicy.Max)
		return len(ended) > 0
	})
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if _, err := b.Storage.Create(t.Context(), "/registry/pods/default/web", []byte(`{"metadata":{}}`), 0); err != nil {
		t.Error(err)
	}
}

// An unhealthy etcd is waited for, and each reason is logged once; an untrusted
// certificate is an error at once, because waiting does not help.
func TestWait(t *testing.T) {
	state := make(chan int, 1)
	state <- http.StatusServiceUnavailable
	ill := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		code := <-state
		state <- code
		w.WriteHeader(code)
	})
	server := httptest.NewServer(ill)
	defer server.Close()
	core, log := observer.New(zap.WarnLevel)
	clock := testclock.NewFakeClock(time.Now())
	b := open(t, clock, zap.New(core), server.URL)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Wait(ctx) }()
	pause := func() { // Wait's pause
		eventually.Holds(t, "it pauses", func() bool { return clock.HasWaiters() || len(ended) > 0 })
		clock.Step(2 * waitPolicy.Max)
	}
	for !strings.Contains(last(said(log)), "503 Service Unavailable") {
		pause()
	}
	pause()
	<-state
	state <- http.StatusBadGateway
	for !strings.Contains(last(said(log)), "502 Bad Gateway") {
		pause()
	}
	pause()
	pause()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	before := ""
	for _, reason := range said(log) {
		if reason == before {
			t.Errorf("said twice in a row: %s", reason)
		}
		before = reason
	}

	stranger := httptest.NewTLSServer(ill)
	defer stranger.Close()
	b = open(t, clock, zap.NewNop(), stranger.URL)
	go func() { ended <- b.Wait(t.Context()) }()
	for len(ended) == 0 {
		pause()
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "--etcd-cafile") || !strings.Contains(err.Error(), stranger.URL) {
		t.Errorf("a stranger's certificate: %v", err)
	}
}

// said are the logged reasons for waiting.
func said(log *observer.ObservedLogs) []string {
	var reasons []string
	for _, entry := range log.FilterMessage("waiting for etcd").All() {
		reason, _ := entry.ContextMap()["error"].(string)
		reasons = append(reasons, reason)
	}
	return reasons
}

func last(reasons []string) string {
	if len(reasons) == 0 {
		return ""
	}
	return reasons[len(reasons)-1]
}
