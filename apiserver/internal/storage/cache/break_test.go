package cache_test

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	_, err := b.Watch(t.Context(), cache.WatchOptions{Selection: cache.Selection{Prefix: prefix}, Since: first.Revision})
	if !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("watch on from before: %v", err)
	}
}

// outside is a store on an etcd as on one outside the process: it outlives the etcd's
// restarts.
func outside(t *testing.T, embedded *etcd.Embedded) *etcd.Store {
	t.Helper()
	if embedded.Socket == "" {
		t.Skip("the temporary directory's path is too long for a socket")
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
	t.Cleanup(func() { _ = client.Close() })
	return etcd.NewStore(etcd.Options{Client: client, Clock: clock.RealClock{}})
}

func TestEtcdStopsAndComesBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "e")
	_, embedded := etcdtest.StartIn(t, dir)
	b := start(t, outside(t, embedded), clock.RealClock{})
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

// TestEtcdComesBackOlder: a backup is restored below a server that runs, without new
// revisions.
func TestEtcdComesBackOlder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "e")
	_, embedded := etcdtest.StartIn(t, dir)
	b := start(t, outside(t, embedded), clock.RealClock{})
	kept := b.create("ns/kept", "red")
	if err := embedded.Stop(); err != nil {
		t.Fatal(err)
	}
	backup := filepath.Join(t.TempDir(), "b")
	if err := os.CopyFS(backup, os.DirFS(filepath.Join(dir, "member"))); err != nil {
		t.Fatal(err)
	}
	_, embedded = etcdtest.StartIn(t, dir)
	var lost storage.Object
	for range 3 {
		lost = b.create(fmt.Sprintf("ns/lost-%d", lost.Revision), "red")
	}
	b.current()
	w := b.watch(cache.WatchOptions{Since: lost.Revision})
	if err := embedded.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "member")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(backup, filepath.Join(dir, "member")); err != nil {
		t.Fatal(err)
	}
	etcdtest.StartIn(t, dir)
	if got := seen(w); got != "end" {
		t.Errorf("watcher got %s, though what it has seen was never written", got)
	}
	b.current()
	if got := names(b.List(cache.Page{Selection: cache.Selection{Prefix: prefix}})); got != "ns/kept" {
		t.Errorf("read: %q, want what the backup has, %s", got, kept.Key)
	}
	_, err := b.Watch(t.Context(), cache.WatchOptions{Selection: cache.Selection{Prefix: prefix}, Since: lost.Revision})
	if !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("watch on from what is lost: %v", err)
	}
	b.watch(cache.WatchOptions{Since: lost.Revision + 1000}) // from a server that is ahead: waits
	made := b.create("ns/new", "red")
	b.current()
	if _, ok := b.Get(made.Key); !ok {
		t.Error("what is written now is not seen")
	}
}
