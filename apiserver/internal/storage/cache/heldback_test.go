package cache_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/cache"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
	"kctl/proto/eventually"
)

const broken = "/registry/secrets/ns/broken"

// until waits until a cache is ready, or fails with want.
func until(t *testing.T, c *cache.Cache, want error) {
	t.Helper()
	eventually.Holds(t, fmt.Sprintf("the cache says %v", want), func() bool { return errors.Is(c.Ready(), want) })
}

// An unreadable value affects only its own resource: lists of it fail instead
// of lacking the object, its watches end, and all other resources are served.
// It recovers when the value is repaired, or when it becomes readable as it is.
func TestWhatCannotBeReadHoldsBackItsOwnResource(t *testing.T) {
	store, embedded := etcdtest.StartIn(t, t.TempDir())
	put := func(key, value string) int64 {
		t.Helper()
		answer, err := embedded.Client().Put(t.Context(), key, value)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Header.Revision
	}
	good := put("/registry/secrets/ns/good", string(thing("good", "")))
	put(broken, "k8s\x00nonsense")
	feed := newFeed(store)
	secrets, _ := fed(t, store, feed, "secrets")
	others, _ := fed(t, store, feed, "others")
	background(t, feed.Run)
	for _, c := range []*cache.Cache{secrets, others} { // at the start
		if err := c.WaitReady(t.Context()); (err == nil) != (c == others) {
			t.Fatalf("ready: %v", err)
		}
	}
	if held := feed.HeldBack(); len(held) != 1 || held[0] != "secrets" {
		t.Errorf("held back: %q", held)
	}
	all := cache.Selection{Prefix: "/registry/secrets/"}
	if _, err := secrets.Watch(t.Context(), cache.WatchOptions{SendInitialEvents: true, Selection: all}); !errors.Is(err, cache.ErrHeldBack) {
		t.Errorf("watched: %v", err)
	}
	if _, err := secrets.ListStored(t.Context(), cache.Page{Selection: all}, 0); !errors.Is(err, storage.ErrUnreadable) {
		t.Errorf("listed: %v", err)
	}
	if e, err := secrets.GetStored(t.Context(), "/registry/secrets/ns/good"); err != nil || e.Revision != good {
		t.Errorf("the one that can be read: %v, %v", e, err)
	}
	put("/registry/others/ns/a", string(thing("a", "")))
	if err := others.WaitCurrent(t.Context()); err != nil || count(others, "others") != 1 {
		t.Errorf("another resource: %v, %d objects", err, count(others, "others"))
	}

	mended := put(broken, string(thing("broken", "")))
	until(t, secrets, nil)
	if list := secrets.List(cache.Page{Selection: cache.Selection{Prefix: "/registry/secrets/"}}); len(list.Entries) != 2 || list.Revision < mended {
		t.Errorf("after it was put right: %d objects at %d", len(list.Entries), list.Revision)
	}

	w, err := secrets.Watch(t.Context(), cache.WatchOptions{Since: mended, Selection: cache.Selection{Prefix: "/registry/secrets/"}}) // while it runs
	if err != nil {
		t.Fatal(err)
	}
	whole := string(thing("broken", ""))
	put(broken, whole[:len(whole)-1]) // its metadata can be read
	for e := range w.Events() {
		t.Errorf("told of %s", e.Type)
	}
	until(t, secrets, cache.ErrHeldBack)
	put("/registry/others/ns/b", string(thing("b", "")))
	if err := others.WaitCurrent(t.Context()); err != nil || count(others, "others") != 2 {
		t.Errorf("another resource: %v, %d objects", err, count(others, "others"))
	}
	if list := secrets.List(cache.Page{Selection: cache.Selection{Prefix: "/registry/secrets/"}}); len(list.Entries) != 2 || list.Revision != mended {
		t.Errorf("says of %d objects that they are of %d, not %d", len(list.Entries), list.Revision, mended)
	}
	if _, err := embedded.Client().Delete(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
	until(t, secrets, nil)
	if n := count(secrets, "secrets"); n != 1 || feed.HeldBack() != nil {
		t.Errorf("after it was deleted: %d objects, held back %q", n, feed.HeldBack())
	}
}

// locked is a store whose values can be made unreadable.
type locked struct {
	storage.Interface
	is chan bool
}

func (l *locked) List(ctx context.Context, prefix, after string, limit, revision int64) ([]storage.Object, int64, int64, error) {
	objects, at, remaining, err := l.Interface.List(ctx, prefix, after, limit, revision)
	if <-l.is && len(objects) > 0 {
		objects[0].Unreadable = &storage.KeyError{Op: "list", Key: objects[0].Key, Err: storage.ErrUnreadable}
	}
	return objects, at, remaining, err
}

// A key that comes back changes nothing in etcd, so reading is retried from
// time to time.
func TestWhatCannotBeReadIsTriedAgain(t *testing.T) {
	store := &locked{Interface: etcdtest.Start(t), is: make(chan bool)}
	if _, err := store.Create(t.Context(), "/registry/secrets/ns/a", thing("a", ""), 0); err != nil {
		t.Fatal(err)
	}
	clock := clocktesting.NewFakeClock(time.Unix(1700000000, 0))
	c := cache.New(cache.Options{Storage: store, Prefix: "/registry/secrets/", Namespaced: true, Clock: clock, Logger: zap.NewNop()})
	background(t, c.Run)
	store.is <- true // the reflector's list
	until(t, c, cache.ErrHeldBack)
	store.is <- true // at once
	eventually.Holds(t, "the reflector pauses", clock.HasWaiters)
	clock.Step(10 * time.Second)
	store.is <- false
	until(t, c, nil)
}
