package cache_test

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/cache"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
)

func TestWatchTellsWhatHappened(t *testing.T) {
	b := start(t, etcdtest.Start(t), clock.RealClock{})
	first := b.create("ns/a", "red")
	b.current()
	fromNow := b.watch(cache.WatchOptions{Since: first.Revision})
	initial := b.watch(cache.WatchOptions{SendInitialEvents: true})
	other := b.watch(cache.WatchOptions{Selection: cache.Selection{Prefix: prefix + "other/"}, Since: first.Revision})
	if got, want := seen(initial), at("ADDED", first); got != want {
		t.Errorf("initial state: %s, want %s", got, want)
	}
	second := b.update(first, "blue")
	gone := b.delete(second)
	for _, w := range []<-chan cache.WatchEvent{fromNow, initial} {
		for _, want := range []string{at("MODIFIED", second), at("DELETED", gone)} {
			if got := seen(w); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}
	b.current()
	later := b.watch(cache.WatchOptions{Since: second.Revision})
	if got, want := seen(later), at("DELETED", gone); got != want {
		t.Errorf("resumed: %s, want %s", got, want)
	}
	elsewhere := b.create("other/x", "")
	if got, want := seen(other), at("ADDED", elsewhere); got != want {
		t.Errorf("other namespace: %s, want %s", got, want)
	}
}

func TestWatchFromTheFuture(t *testing.T) {
	b := start(t, etcdtest.Start(t), clock.RealClock{})
	first := b.create("ns/a", "red")
	b.current()
	w := b.watch(cache.WatchOptions{Since: first.Revision + 1})
	b.create("ns/not-yet", "")
	wanted := b.create("ns/b", "red")
	if got, want := seen(w), at("ADDED", wanted); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A change may make an object match a watcher's selector, or stop matching.
func TestSelectorsTurnChangesIntoComingsAndGoings(t *testing.T) {
	b := start(t, etcdtest.Start(t), clock.RealClock{})
	byField := cache.Selection{Prefix: prefix, Fields: fields.ParseSelectorOrDie("color=red")}
	watchers := []<-chan cache.WatchEvent{
		b.watch(cache.WatchOptions{Selection: selectColor("red"), SendInitialEvents: true}),
		b.watch(cache.WatchOptions{Selection: byField, SendInitialEvents: true}),
	}
	blue := b.create("ns/a", "blue")
	red := b.update(blue, "red")
	redder := b.update(red, "red")
	left := b.update(redder, "blue")
	back := b.update(left, "red")
	gone := b.delete(back)
	for _, w := range watchers {
		for _, want := range []string{at("ADDED", red), at("MODIFIED", redder), at("DELETED", left), at("ADDED", back), at("DELETED", gone)} {
			if got := seen(w); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}
}

func TestTooOldRevisionsAreExpired(t *testing.T) {
	time0 := clocktesting.NewFakeClock(time.Unix(1700000000, 0))
	store, embedded := etcdtest.StartIn(t, t.TempDir())
	b := start(t, store, time0)
	first := b.create("ns/first", "")
	slow := b.watch(cache.WatchOptions{Since: first.Revision})
	quick := b.watch(cache.WatchOptions{Since: first.Revision})
	last := first
	for i := range 400 {
		last = b.create(fmt.Sprintf("ns/%03d", i), "")
		if got, want := seen(quick), at("ADDED", last); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	b.watch(cache.WatchOptions{Since: first.Revision})
	// Old changes are dropped when new ones come.
	time0.Step(time.Hour)
	b.create("ns/late", "")
	seen(quick)
	if _, err := embedded.Client().Compact(t.Context(), first.Revision+1); err != nil {
		t.Fatal(err)
	}
	_, err := b.Watch(t.Context(), cache.WatchOptions{Selection: cache.Selection{Prefix: prefix}, Since: first.Revision})
	if want := fmt.Sprintf("too old resource version: %d (", first.Revision); !errors.Is(err, storage.ErrCompacted) || !strings.HasPrefix(err.Error(), want) ||
		!strings.HasSuffix(err.Error(), ")") {
		t.Errorf("watch from %d: %v", first.Revision, err)
	}
	b.watch(cache.WatchOptions{Since: last.Revision})
	// The slow watcher had some in flight, then ended: it must not miss any.
	next := first.Revision
	for got := seen(slow); got != "end"; got = seen(slow) {
		_, version, _ := strings.Cut(got, "@")
		revision, err := strconv.ParseInt(version, 10, 64)
		if err != nil || revision != next+1 {
			t.Fatalf("after revision %d came %s", next, got)
		}
		next = revision
	}
	if next == last.Revision+1 {
		t.Error("the slow watcher was not ended")
	}
}

func TestBookmarks(t *testing.T) {
	time0 := clocktesting.NewFakeClock(time.Unix(1700000000, 0))
	b := start(t, etcdtest.Start(t), time0)
	made := b.create("ns/a", "")
	w := b.watch(cache.WatchOptions{Since: made.Revision, Bookmarks: true})
	without := b.watch(cache.WatchOptions{Since: made.Revision})
	elsewhere, err := b.store.Create(t.Context(), "/registry/other/x", thing("x", ""), 0)
	if err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case e := <-w:
			if e.Object.Revision < elsewhere.Revision {
				continue // stepping this clock leaves etcd no time to answer
			}
			want := fmt.Sprintf(`{"kind":"Thing","apiVersion":"v1","metadata":{"resourceVersion":"%d"}}`, elsewhere.Revision)
			if e.Type != cache.Bookmark || string(e.Object.JSON) != want {
				t.Errorf("got %s %s, want %s", e.Type, e.Object.JSON, want)
			}
			select {
			case e := <-without:
				t.Errorf("the watcher without bookmarks got %s", e.Type)
			default:
			}
			return
		default:
			time0.Step(10 * time.Second)
			runtime.Gosched()
		}
	}
}

func TestInitialStateEndsWithABookmark(t *testing.T) {
	b := start(t, etcdtest.Start(t), clock.RealClock{})
	b.create("ns/a", "red")
	b.create("ns/b", "blue")
	b.current()
	w := b.watch(cache.WatchOptions{Selection: selectColor("blue"), SendInitialEvents: true, InitialEventsEnd: true, Bookmarks: true})
	if got := seen(w); !strings.HasPrefix(got, "ADDED ns/b@") {
		t.Errorf("got %s", got)
	}
	if e := <-w; e.Type != cache.Bookmark || !strings.Contains(string(e.Object.JSON), `"k8s.io/initial-events-end":"true"`) || e.Object.Revision != b.Revision() {
		t.Errorf("got %s %s", e.Type, e.Object.JSON)
	}
}

// TestGathering: changes that follow a delivery closely are delivered together.
func TestGathering(t *testing.T) {
	time0 := clocktesting.NewFakeClock(time.Unix(1700000000, 0))
	b := start(t, etcdtest.Start(t), time0)
	b.current()
	w, err := b.Watch(t.Context(), cache.WatchOptions{Selection: cache.Selection{Prefix: prefix}, Since: b.Revision(), BatchDelay: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string)
	go func() {
		for event, more := range w.Events() {
			got <- fmt.Sprint(event.Type, " ", event.Object.Revision, " ", more)
		}
	}()
	expect := func(made storage.Object, more bool) {
		t.Helper()
		if got, want := <-got, fmt.Sprint("ADDED ", made.Revision, " ", more); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	expect(b.create("ns/a", ""), false)
	second := b.create("ns/b", "")
	third := b.create("ns/c", "")
	b.current()
	time0.Step(time.Second) // only now is the second due, and the third has come
	expect(second, true)
	expect(third, false)
}
