package cache_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/cache"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
)

// Who was watching a server that has ended goes on at the next one from where it
// was, by selectors too, and then sees what happens now.
func TestThePastIsReadFromEtcd(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1700000000, 0))
	store, embedded := etcdtest.StartIn(t, t.TempDir())
	before := start(t, store, clock)
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

	b := start(t, store, clock)
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
	for _, want := range []string{at("ADDED", red), at("MODIFIED", redder), at("DELETED", blue), at("ADDED", back), at("DELETED", gone), at("ADDED", again), at("MODIFIED", now)} {
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
	c := start(t, store, clock)
	kept := c.watch(cache.WatchOptions{Since: other.Revision})
	if got, want := seen(kept), at("MODIFIED", back); got != want {
		t.Errorf("after the compaction: got %s, want %s", got, want)
	}
	_, err = c.Watch(t.Context(), cache.WatchOptions{Selection: cache.Selection{Prefix: prefix}, Since: other.Revision - 1})
	if !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("watch from before the compaction: %v", err)
	}
}

// A watcher whom the ring has left behind goes on from what it has seen, even if
// the ring goes on while the past is read.
func TestASlowWatcherGoesOn(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1700000000, 0))
	b := start(t, etcdtest.Start(t), clock)
	first := b.create("ns/first", "")
	const many = 300
	created := 0
	outrun := func() {
		for range many {
			b.create(fmt.Sprintf("ns/%04d", created), "")
			created++
		}
		b.current()
		clock.Step(time.Hour) // what is old goes when there is something new
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

// Too many who read the past at once are told to list.
func TestThePastIsReadByAFewAtOnce(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1700000000, 0))
	store := etcdtest.Start(t)
	first := start(t, store, clock).create("ns/first", "")
	second, err := store.Create(t.Context(), prefix+"ns/second", thing("second", ""), 0)
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, store, clock)
	refused := 0
	for range 8 { // none of them reads on
		if _, err := b.Watch(t.Context(), cache.WatchOptions{Selection: cache.Selection{Prefix: prefix}, Since: first.Revision}); errors.Is(err, storage.ErrCompacted) {
			refused++
		}
	}
	if refused != 4 {
		t.Errorf("%d of 8 were refused", refused)
	}
	if got, want := seen(b.watch(cache.WatchOptions{Since: second.Revision - 1, Initial: true})), at("ADDED", first); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
