package cache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/cache"
	"kctl/apiserver/internal/storage/etcd"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
)

// A client of a server that has ended continues its watch at the next one, with
// its selectors, too, and then sees new events.
func TestThePastIsReadFromEtcd(t *testing.T) {
	time0 := clocktesting.NewFakeClock(time.Unix(1700000000, 0))
	store, embedded := etcdtest.StartIn(t, t.TempDir())
	before := start(t, store, time0)
	first := before.create("ns/first", "blue")
	red := before.create("ns/a", "red")
	redder := before.update(red, "red")
	blue := before.update(redder, "blue")
	other, err := store.Create(t.Context(), "/registry/others/x", thing("x", "red"), 0)
	if err != nil {
		t.Fatal(err)
	}
	back := before.update(blue, "red")
	gone := before.delete(back)
	again := before.create("ns/a", "red")

	b := start(t, store, time0)
	all := b.watch(cache.WatchOptions{Since: first.Revision})
	selected := b.watch(cache.WatchOptions{Since: first.Revision, Selection: selectColor("red")})
	late := b.watch(cache.WatchOptions{Since: gone.Revision})
	now := b.update(again, "red")
	want := []string{at("MODIFIED", redder), at("MODIFIED", blue), at("MODIFIED", back), at("DELETED", gone), at("ADDED", again), at("MODIFIED", now)}
	for _, want := range append([]string{at("ADDED", red)}, want...) {
		if got := seen(all); got != want {
			t.Errorf("all: got %s, want %s", got, want)
		}
	}
	for _, want := range []string{at("ADDED", red), at("MODIFIED", redder), at("DELETED", blue), at("ADDED", back), at("DELETED", gone), at("ADDED", again),
		at("MODIFIED", now)} {
		if got := seen(selected); got != want {
			t.Errorf("selected: got %s, want %s", got, want)
		}
	}
	for _, want := range []string{at("ADDED", again), at("MODIFIED", now)} {
		if got := seen(late); got != want {
			t.Errorf("late: got %s, want %s", got, want)
		}
	}

	if _, err := embedded.Client().Compact(t.Context(), other.Revision); err != nil {
		t.Fatal(err)
	}
	c := start(t, store, time0)
	kept := c.watch(cache.WatchOptions{Since: other.Revision})
	if got, want := seen(kept), at("MODIFIED", back); got != want {
		t.Errorf("after the compaction: got %s, want %s", got, want)
	}
	_, err = c.Watch(t.Context(), cache.WatchOptions{Selection: cache.Selection{Prefix: prefix}, Since: other.Revision - 1})
	if !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("watch from before the compaction: %v", err)
	}
}

// A watcher that fell out of the ring continues from what it has seen, even if
// the ring advances while the history is read.
func TestASlowWatcherGoesOn(t *testing.T) {
	time0 := clocktesting.NewFakeClock(time.Unix(1700000000, 0))
	b := start(t, etcdtest.Start(t), time0)
	first := b.create("ns/first", "")
	const many = 300
	created := 0
	outrun := func() {
		for range many {
			b.create(fmt.Sprintf("ns/%04d", created), "")
			created++
		}
		b.current()
		time0.Step(time.Hour) // old events are dropped when new ones come
		b.create(fmt.Sprintf("ns/%04d", created), "")
		created++
		b.current()
	}
	outrun()
	slow := b.watch(cache.WatchOptions{Since: first.Revision})
	outrun()
	for next := first.Revision + 1; next <= first.Revision+int64(created); next++ {
		if got, want := seen(slow), fmt.Sprintf("@%d", next); !strings.HasPrefix(got, "ADDED ") || !strings.HasSuffix(got, want) {
			t.Fatalf("got %s, want one added%s", got, want)
		}
	}
	last := b.create("ns/last", "")
	if got, want := seen(slow), at("ADDED", last); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// An object that was unreadable for a while is new to a watcher that continues
// from that time.
func TestThePastMayBeBroken(t *testing.T) {
	store, embedded := etcdtest.StartIn(t, t.TempDir())
	raw := embedded.Client()
	broken, err := raw.Put(t.Context(), prefix+"ns/mended", "{")
	if err != nil {
		t.Fatal(err)
	}
	put, err := raw.Put(t.Context(), prefix+"ns/mended", string(thing("ns/mended", "")))
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, store, clocktesting.NewFakeClock(time.Unix(1700000000, 0)))
	w := b.watch(cache.WatchOptions{Since: broken.Header.Revision})
	mended := storage.Object{Key: prefix + "ns/mended", Revision: put.Header.Revision}
	if got, want := seen(w), at("ADDED", mended); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// If the end of the history can't be read, the watcher is told to list:
// otherwise it would come back to the same place.
func TestThePastMayBeSealed(t *testing.T) {
	_, embedded := etcdtest.StartIn(t, t.TempDir())
	seal := func(t etcd.Transformer) *etcd.Store {
		return etcd.NewStore(etcd.Options{
			Client: embedded.Client(), Direct: embedded.Direct(), CurrentRevision: embedded.Revision, Transformer: t,
			Clock: clock.RealClock{},
		})
	}
	old, now := seal(key("old")), seal(key("now"))
	first, err := now.Create(t.Context(), prefix+"ns/first", thing("ns/first", ""), 0)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := old.Create(t.Context(), prefix+"ns/kept", thing("ns/kept", ""), 0)
	if err != nil {
		t.Fatal(err)
	}
	rewritten, err := now.Update(t.Context(), kept.Key, kept.Revision, thing("ns/kept", "red"), 0)
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, now, clocktesting.NewFakeClock(time.Unix(1700000000, 0)))
	if got, want := seen(b.watch(cache.WatchOptions{Since: kept.Revision})), at("ADDED", rewritten); got != want {
		t.Errorf("from the rewriting on: got %s, want %s", got, want)
	}
	e := <-b.watch(cache.WatchOptions{Since: first.Revision})
	if words := fmt.Sprintf("too old resource version: %d (", first.Revision); e.Type != cache.Error ||
		!strings.Contains(string(e.Object.JSON), `"reason":"Expired"`) || !strings.Contains(string(e.Object.JSON), words) {
		t.Errorf("from before it: %s %s", e.Type, e.Object.JSON)
	}
}

// key encrypts values, so that they can't be read with another key.
type key string

func (k key) Open(_ context.Context, _ string, stored []byte) ([]byte, bool, error) {
	value, mine := bytes.CutPrefix(stored, []byte(k+":"))
	if !mine {
		return nil, false, errors.New("sealed with another key")
	}
	return value, false, nil
}

func (k key) Seal(_ context.Context, _ string, value []byte) ([]byte, error) {
	return append([]byte(k+":"), value...), nil
}

// Few read the history at once; others wait for their turn, which comes when one has read it
// or has left.
func TestThePastIsReadByAFewAtOnce(t *testing.T) {
	store := etcdtest.Start(t)
	first, err := store.Create(t.Context(), prefix+"ns/first", thing("ns/first", ""), 0)
	if err != nil {
		t.Fatal(err)
	}
	second, err := store.Create(t.Context(), prefix+"ns/second", thing("ns/second", ""), 0)
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, store, clocktesting.NewFakeClock(time.Unix(1700000000, 0)))
	past := cache.WatchOptions{Selection: cache.Selection{Prefix: prefix}, Since: first.Revision}
	many := func() (refused int) {
		var mu sync.Mutex
		var work sync.WaitGroup
		for range 8 {
			work.Go(func() {
				w, err := b.Watch(t.Context(), past)
				if errors.Is(err, storage.ErrCompacted) {
					mu.Lock()
					defer mu.Unlock()
					refused++
				} else if err != nil {
					t.Error(err)
				} else if got, want := seen(cache.Channel(t.Context(), w.Events())), at("ADDED", second); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			})
		}
		work.Wait()
		return refused
	}
	if refused := many(); refused != 0 {
		t.Errorf("%d of 8 who read on were refused", refused)
	}
	ctx, cancel := context.WithCancel(t.Context())
	for range 4 {
		if _, err := b.Watch(ctx, past); err != nil { // and does not read on
			t.Fatal(err)
		}
	}
	cancel()
	if refused := many(); refused != 0 {
		t.Errorf("%d of 8 were refused after that", refused)
	}
}
