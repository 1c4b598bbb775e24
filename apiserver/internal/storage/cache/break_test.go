package cache_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/cache"
	"kctl/apiserver/internal/storage/etcd"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
)

// breakable is a store whose watches can be cut.
type breakable struct {
	storage.Interface
	mu     sync.Mutex
	cut    context.CancelFunc
	closed chan struct{} // new watches wait until it is closed
}

var errCut = errors.New("cut")

type cutWatch struct{ storage.Watch }

func (w cutWatch) Err() error {
	if err := w.Watch.Err(); errors.Is(err, storage.ErrCompacted) {
		return err
	}
	return errCut
}

func (b *breakable) Watch(ctx context.Context, prefix string, revision int64) (storage.Watch, error) {
	b.mu.Lock()
	gate := b.closed
	b.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	b.mu.Lock()
	b.cut = cancel
	b.mu.Unlock()
	w, err := b.Interface.Watch(ctx, prefix, revision)
	return cutWatch{w}, err
}

// breakNow cuts the present watch; the next one waits until mend is called.
func (b *breakable) breakNow() (mend func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	gate := make(chan struct{})
	b.closed = gate
	b.cut()
	return func() {
		b.mu.Lock()
		b.closed = nil
		b.mu.Unlock()
		close(gate)
	}
}

func TestABrokenWatchGoesOnWhereItWas(t *testing.T) {
	store := &breakable{Interface: etcdtest.Start(t)}
	b := start(t, store, clock.RealClock{})
	first := b.create("ns/a", "red")
	b.current()
	w := b.watch(cache.WatchOptions{Since: first.Revision})
	mend := store.breakNow()
	second := b.update(first, "blue")
	gone := b.delete(second)
	mend()
	for _, want := range []string{at("MODIFIED", second), at("DELETED", gone)} {
		if got := seen(w); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestChangesThatEtcdDroppedEndTheWatchers(t *testing.T) {
	inner, embedded := etcdtest.StartIn(t, t.TempDir())
	store := &breakable{Interface: inner}
	b := start(t, store, clock.RealClock{})
	first := b.create("ns/a", "red")
	b.current()
	w := b.watch(cache.WatchOptions{Since: first.Revision})
	mend := store.breakNow()
	second := b.update(first, "blue")
	third := b.update(second, "green")
	if _, err := embedded.Client().Compact(t.Context(), third.Revision); err != nil {
		t.Fatal(err)
	}
	mend()
	if got := seen(w); got != "end" {
		t.Errorf("watcher got %s, though a change is lost", got)
	}
	b.current()
	if e, ok := b.Get(third.Key); !ok || e.Revision != third.Revision {
		t.Errorf("read again: %+v", e)
	}
	if _, err := b.Watch(t.Context(), cache.WatchOptions{Selection: cache.Selection{Prefix: prefix}, Since: first.Revision}); !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("watch on from before: %v", err)
	}
}

func TestEtcdStopsAndComesBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "e")
	_, embedded := etcdtest.StartIn(t, dir)
	if embedded.Socket == "" {
		t.Skip("the temporary directory's path is too long for a socket: " + dir)
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"unix://" + embedded.Socket},
		Logger:    zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1, MaxDelay: 20 * time.Millisecond},
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	store := etcd.NewStore(etcd.Options{Client: client, Clock: clock.RealClock{}})
	b := start(t, store, clock.RealClock{})
	first := b.create("ns/a", "red")
	b.current()
	w := b.watch(cache.WatchOptions{Since: first.Revision})
	if err := embedded.Stop(); err != nil {
		t.Fatal(err)
	}
	if e, ok := b.Get(first.Key); !ok || e.Revision != first.Revision {
		t.Errorf("without etcd: %+v", e)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := b.WaitCurrent(ctx); err == nil {
		t.Error("a consistent read was answered without etcd")
	}
	again, _ := etcdtest.StartIn(t, dir)
	second, err := again.Update(t.Context(), first.Key, first.Revision, thing("ns/a", "blue"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := seen(w), at("MODIFIED", second); got != want {
		t.Errorf("after the restart: %s, want %s", got, want)
	}
	b.current()
}
