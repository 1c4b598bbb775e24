package cache_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/cache"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
)

// counted counts a reflector's requests to etcd.
type counted struct {
	storage.Interface
	lists, watches atomic.Int64
}

func (c *counted) List(ctx context.Context, prefix, after string, limit, revision int64) ([]storage.Object, int64, int64, error) {
	c.lists.Add(1)
	return c.Interface.List(ctx, prefix, after, limit, revision)
}

func (c *counted) Watch(ctx context.Context, prefix string, revision int64) (storage.Watch, error) {
	c.watches.Add(1)
	return c.Interface.Watch(ctx, prefix, revision)
}

func background(t testing.TB, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func newFeed(store storage.Reader) *cache.Reflector {
	return cache.NewReflector(cache.ReflectorOptions{Storage: store, Prefix: "/registry/", Clock: clock.RealClock{}, Logger: zap.NewNop()})
}

// fed returns a running cache of one resource.
func fed(t testing.TB, store storage.Reader, feed *cache.Reflector, resource string) (c *cache.Cache, stop func()) {
	t.Helper()
	c = cache.New(cache.Options{
		Storage: store, Reflector: feed, Prefix: "/registry/" + resource + "/", Namespaced: true, Clock: clock.RealClock{}, Logger: zap.NewNop(),
	})
	return c, background(t, c.Run)
}

func count(c *cache.Cache, resource string) int {
	return len(c.List(cache.Page{Selection: cache.Selection{Prefix: "/registry/" + resource + "/"}}).Entries)
}

// However many resources there are, etcd gets one list and one watch, and a
// write to one resource brings all caches up to date.
func TestOneWatchFeedsAll(t *testing.T) {
	store := &counted{Interface: etcdtest.Start(t)}
	write := func(key string) storage.Object {
		t.Helper()
		made, err := store.Create(t.Context(), key, thing("x", ""), 0)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	const resources = 20
	name := func(i int) string { return fmt.Sprintf("group%d.io/things", i) }
	for i := range resources {
		write("/registry/" + name(i) + "/ns/before")
	}
	feed := newFeed(store)
	var caches []*cache.Cache
	for i := range resources {
		c, _ := fed(t, store, feed, name(i))
		caches = append(caches, c)
	}
	background(t, feed.Run)
	for i, c := range caches {
		if err := c.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		write("/registry/" + name(i) + "/ns/after")
	}
	last := write("/registry/nobodys/x")
	for i, c := range caches {
		if err := c.WaitCurrent(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := count(c, name(i)); n != 2 || c.Revision() != last.Revision {
			t.Errorf("%s: %d objects at %d, written up to %d", name(i), n, c.Revision(), last.Revision)
		}
	}
	if store.lists.Load() != 1 || store.watches.Load() != 1 {
		t.Errorf("%d lists, %d watches", store.lists.Load(), store.watches.Load())
	}
}

// A cache that joins a running reflector has what was there before, what came while
// it was read, and what comes later.
func TestACacheThatComesLate(t *testing.T) {
	store := etcdtest.Start(t)
	feed := newFeed(store)
	first, _ := fed(t, store, feed, "first")
	background(t, feed.Run)
	if err := first.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	const writes = 300
	done := make(chan error, 1)
	go func() {
		for i := range writes {
			if _, err := store.Create(context.WithoutCancel(t.Context()), fmt.Sprintf("/registry/late/ns/%d", i), thing("x", ""), 0); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	var late []*cache.Cache
	for range 10 {
		c, stop := fed(t, store, feed, "late")
		if err := c.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(late) == 3 { // removing one must not disturb the rest
			stop()
			continue
		}
		late = append(late, c)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for i, c := range late {
		if err := c.WaitCurrent(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := count(c, "late"); n != writes {
			t.Errorf("cache %d has %d of %d objects", i, n, writes)
		}
	}
}
