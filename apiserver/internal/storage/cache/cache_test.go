package cache_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/cache"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
)

const prefix = "/registry/things/"

// bed is a cache over a real etcd.
type bed struct {
	*cache.Cache
	t     testing.TB
	store storage.Interface
}

func start(t testing.TB, store storage.Interface, clock clock.WithTicker) *bed {
	t.Helper()
	c := cache.New(cache.Options{
		Storage:    store,
		Prefix:     prefix,
		Namespaced: true,
		Kind:       schema.GroupVersionKind{Version: "v1", Kind: "Thing"},
		Fields: func(value []byte) (fields.Set, error) {
			var thing struct{ Color string }
			err := json.Unmarshal(value, &thing)
			return fields.Set{"color": thing.Color}, err
		},
		Clock:  clock,
		Logger: zap.NewNop(),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("cache ended with %v", err)
		}
	})
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &bed{Cache: c, t: t, store: store}
}

func thing(name, color string) []byte {
	return fmt.Appendf(nil, `{"kind":"Thing","metadata":{"name":%q,"labels":{"color":%q}},"color":%q}`, name, color, color)
}

func (b *bed) create(name, color string) storage.Object {
	b.t.Helper()
	made, err := b.store.Create(b.t.Context(), prefix+name, thing(name, color), 0)
	if err != nil {
		b.t.Fatal(err)
	}
	return made
}

func (b *bed) update(old storage.Object, color string) storage.Object {
	b.t.Helper()
	name := strings.TrimPrefix(old.Key, prefix)
	made, err := b.store.Update(b.t.Context(), old.Key, old.Revision, thing(name, color), 0)
	if err != nil {
		b.t.Fatal(err)
	}
	return made
}

func (b *bed) delete(old storage.Object) storage.Object {
	b.t.Helper()
	gone, err := b.store.Delete(b.t.Context(), old.Key, old.Revision)
	if err != nil {
		b.t.Fatal(err)
	}
	return gone
}

func (b *bed) current() {
	b.t.Helper()
	if err := b.WaitCurrent(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) watch(o cache.WatchOptions) *cache.Watcher {
	b.t.Helper()
	if o.Prefix == "" {
		o.Prefix = prefix
	}
	w, err := b.Watch(b.t.Context(), o)
	if err != nil {
		b.t.Fatal(err)
	}
	return w
}

// seen is the next event as "TYPE key's-name@revision".
func seen(w *cache.Watcher) string {
	e, ok := <-w.Events()
	if !ok {
		return "end"
	}
	var object struct {
		Metadata struct{ Name, ResourceVersion string }
	}
	if err := json.Unmarshal(e.Object.JSON, &object); err != nil {
		return err.Error()
	}
	if e.Frame != nil {
		if want := `{"type":"` + e.Type + `","object":` + string(e.Object.JSON) + "}\n"; string(e.Frame) != want {
			return fmt.Sprintf("frame %s instead of %s", e.Frame, want)
		}
	}
	return fmt.Sprintf("%s %s@%s", e.Type, object.Metadata.Name, object.Metadata.ResourceVersion)
}

func at(kind string, o storage.Object) string {
	return fmt.Sprintf("%s %s@%d", kind, strings.TrimPrefix(o.Key, prefix), o.Revision)
}

func selectColor(color string) cache.Selection {
	return cache.Selection{Prefix: prefix, Labels: labels.SelectorFromSet(labels.Set{"color": color})}
}

func names(list cache.List) string {
	var out []string
	for _, e := range list.Entries {
		out = append(out, strings.TrimPrefix(e.Key, prefix))
	}
	return strings.Join(out, " ")
}

func TestReadsWhatWasWrittenBefore(t *testing.T) {
	b := start(t, etcdtest.Start(t), clock.RealClock{})
	made := b.create("ns/a", "red")
	b.current()
	e, ok := b.Get(prefix + "ns/a")
	if !ok || string(e.Value) != string(made.Value) || e.Revision != made.Revision {
		t.Errorf("got %+v", e)
	}
	// Writes elsewhere move etcd's revision on, and nothing here: only asking
	// etcd for its progress gets the cache there.
	if _, err := b.store.Create(t.Context(), "/registry/other/x", thing("x", ""), 0); err != nil {
		t.Fatal(err)
	}
	b.current()
	b.delete(made)
	b.current()
	if _, ok := b.Get(prefix + "ns/a"); ok {
		t.Error("deleted object is still there")
	}
}

func TestPagesAndSelections(t *testing.T) {
	b := start(t, etcdtest.Start(t), clock.RealClock{})
	for i, name := range []string{"a/1", "a/2", "a/3", "b/1", "b/2"} {
		b.create(name, []string{"red", "blue"}[i%2])
	}
	b.current()
	all := cache.Selection{Prefix: prefix}
	field := func(text string) cache.Selection {
		return cache.Selection{Prefix: prefix, Fields: fields.ParseSelectorOrDie(text)}
	}
	for _, c := range []struct {
		name      string
		page      cache.Page
		want      string
		more      bool
		remaining int64
	}{
		{"everything", cache.Page{Selection: all}, "a/1 a/2 a/3 b/1 b/2", false, 0},
		{"namespace", cache.Page{Selection: cache.Selection{Prefix: prefix + "b/"}}, "b/1 b/2", false, 0},
		{"first page", cache.Page{Selection: all, Limit: 2}, "a/1 a/2", true, 3},
		{"next page", cache.Page{Selection: all, Limit: 2, After: prefix + "a/2"}, "a/3 b/1", true, 1},
		{"last page", cache.Page{Selection: all, Limit: 2, After: prefix + "b/1"}, "b/2", false, 0},
		{"page that just fits", cache.Page{Selection: all, Limit: 5}, "a/1 a/2 a/3 b/1 b/2", false, 0},
		{"labels", cache.Page{Selection: selectColor("red")}, "a/1 a/3 b/2", false, 0},
		{"labels, paged", cache.Page{Selection: selectColor("red"), Limit: 2}, "a/1 a/3", true, -1},
		{"labels, last page", cache.Page{Selection: selectColor("red"), Limit: 3}, "a/1 a/3 b/2", false, 0},
		{"field", cache.Page{Selection: field("color=blue")}, "a/2 b/1", false, 0},
		{"name", cache.Page{Selection: field("metadata.name=2")}, "a/2 b/2", false, 0},
		{"name and namespace", cache.Page{Selection: field("metadata.name=2,metadata.namespace=b")}, "b/2", false, 0},
		{"name in namespace", cache.Page{Selection: cache.Selection{Prefix: prefix + "a/", Fields: fields.ParseSelectorOrDie("metadata.name=2")}}, "a/2", false, 0},
		{"no such name", cache.Page{Selection: cache.Selection{Prefix: prefix + "a/", Fields: fields.ParseSelectorOrDie("metadata.name=9")}}, "", false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := b.List(c.page)
			if names(got) != c.want || got.More != c.more || got.Remaining != c.remaining {
				t.Errorf("got %q, more %v, %d left", names(got), got.More, got.Remaining)
			}
		})
	}
}

func TestListAtAnOldRevision(t *testing.T) {
	b := start(t, etcdtest.Start(t), clock.RealClock{})
	b.create("ns/a", "red")
	second := b.create("ns/b", "blue")
	third := b.create("ns/c", "red")
	b.delete(second)
	b.current()
	for _, c := range []struct {
		revision int64
		page     cache.Page
		want     string
	}{
		{third.Revision, cache.Page{Selection: cache.Selection{Prefix: prefix}}, "ns/a ns/b ns/c"},
		{second.Revision, cache.Page{Selection: cache.Selection{Prefix: prefix}}, "ns/a ns/b"},
		{third.Revision, cache.Page{Selection: selectColor("red"), Limit: 1}, "ns/a"},
		{third.Revision, cache.Page{Selection: selectColor("red"), After: prefix + "ns/a"}, "ns/c"},
		{b.Revision(), cache.Page{Selection: cache.Selection{Prefix: prefix}}, "ns/a ns/c"},
	} {
		got, err := b.ListAt(t.Context(), c.page, c.revision)
		if err != nil || names(got) != c.want || got.Revision != c.revision {
			t.Errorf("at %d: got %q at %d, %v; want %q", c.revision, names(got), got.Revision, err, c.want)
		}
	}
}

func TestWatchTellsWhatHappened(t *testing.T) {
	b := start(t, etcdtest.Start(t), clock.RealClock{})
	first := b.create("ns/a", "red")
	b.current()
	fromNow := b.watch(cache.WatchOptions{Since: first.Revision})
	initial := b.watch(cache.WatchOptions{Initial: true})
	other := b.watch(cache.WatchOptions{Selection: cache.Selection{Prefix: prefix + "other/"}, Since: first.Revision})
	if got, want := seen(initial), at("ADDED", first); got != want {
		t.Errorf("initial state: %s, want %s", got, want)
	}
	second := b.update(first, "blue")
	gone := b.delete(second)
	for _, w := range []*cache.Watcher{fromNow, initial} {
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

// A change may bring an object into a watcher's sight, or take it out.
func TestSelectorsTurnChangesIntoComingsAndGoings(t *testing.T) {
	b := start(t, etcdtest.Start(t), clock.RealClock{})
	byField := cache.Selection{Prefix: prefix, Fields: fields.ParseSelectorOrDie("color=red")}
	watchers := []*cache.Watcher{
		b.watch(cache.WatchOptions{Selection: selectColor("red"), Initial: true}),
		b.watch(cache.WatchOptions{Selection: byField, Initial: true}),
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
	b := start(t, etcdtest.Start(t), time0)
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
	// Old changes go when new ones come.
	time0.Step(time.Hour)
	b.create("ns/late", "")
	seen(quick)
	_, err := b.Watch(t.Context(), cache.WatchOptions{Selection: cache.Selection{Prefix: prefix}, Since: first.Revision})
	if !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("watch from %d: %v", first.Revision, err)
	}
	b.watch(cache.WatchOptions{Since: last.Revision})
	// The slow watcher had some under way, then ends: it must not miss any.
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
		case e := <-w.Events():
			if e.Object.Revision < elsewhere.Revision {
				continue // the steps of this clock leave etcd no time to answer
			}
			want := fmt.Sprintf(`{"kind":"Thing","apiVersion":"v1","metadata":{"resourceVersion":"%d","creationTimestamp":null}}`, elsewhere.Revision)
			if e.Type != cache.Bookmark || string(e.Object.JSON) != want {
				t.Errorf("got %s %s, want %s", e.Type, e.Object.JSON, want)
			}
			select {
			case e := <-without.Events():
				t.Errorf("who asked for none got %s", e.Type)
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
	w := b.watch(cache.WatchOptions{Selection: selectColor("blue"), Initial: true, InitialEnd: true, Bookmarks: true})
	if got := seen(w); !strings.HasPrefix(got, "ADDED ns/b@") {
		t.Errorf("got %s", got)
	}
	if e := <-w.Events(); e.Type != cache.Bookmark || !strings.Contains(string(e.Object.JSON), `"k8s.io/initial-events-end":"true"`) || e.Object.Revision != b.Revision() {
		t.Errorf("got %s %s", e.Type, e.Object.JSON)
	}
}

func TestRevisionThatNeverComes(t *testing.T) {
	time0 := clocktesting.NewFakeClock(time.Unix(1700000000, 0))
	b := start(t, etcdtest.Start(t), time0)
	done := make(chan error, 1)
	go func() { done <- b.WaitFor(t.Context(), 1<<40) }()
	for {
		select {
		case err := <-done:
			var future *cache.FutureError
			if !errors.Is(err, storage.ErrFuture) || !errors.As(err, &future) || future.Current != b.Revision() {
				t.Errorf("got %v", err)
			}
			return
		default:
			time0.Step(time.Second)
			runtime.Gosched()
		}
	}
}

// Many write at once while others list and watch on: what a client puts
// together from a list and the events after it is always what is stored.
func TestListAndWatchAgreeUnderLoad(t *testing.T) {
	agreeUnderLoad(t, start(t, etcdtest.Start(t), clock.RealClock{}))
}

// The same with an etcd of its own process: Debian's, whose word on progress
// cannot be taken.
func TestListAndWatchAgreeOverAnOldEtcd(t *testing.T) {
	agreeUnderLoad(t, start(t, startProcess(t), clock.RealClock{}))
}

func agreeUnderLoad(t *testing.T, b *bed) {
	const writers, rounds = 8, 60
	var writing, watching sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			name := fmt.Sprintf("ns/%d", w)
			for range rounds {
				o := b.create(name, "1")
				o = b.update(o, "2")
				b.current()
				if e, ok := b.Get(o.Key); !ok || e.Revision != o.Revision {
					t.Errorf("own write at %d not seen: %+v", o.Revision, e)
				}
				b.delete(o)
			}
			b.create(name, "last")
		})
	}
	stop := make(chan struct{})
	for range 6 {
		watching.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if !agree(t, b) {
					return
				}
			}
		})
	}
	writing.Wait()
	close(stop)
	watching.Wait()
	b.current()
	if got := b.List(cache.Page{Selection: cache.Selection{Prefix: prefix}}); len(got.Entries) != writers {
		t.Errorf("at the end: %s", names(got))
	}
}

// agree lists, follows some events, and compares with etcd's list of then.
func agree(t *testing.T, b *bed) bool {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	list := b.List(cache.Page{Selection: cache.Selection{Prefix: prefix}})
	state := map[string]int64{}
	for _, e := range list.Entries {
		state[e.Key] = e.Revision
	}
	w, err := b.Watch(ctx, cache.WatchOptions{Selection: cache.Selection{Prefix: prefix}, Since: list.Revision})
	if err != nil {
		t.Error(err)
		return false
	}
	target, err := b.store.Revision(ctx)
	if err != nil {
		t.Error(err)
		return false
	}
	if err := b.WaitFor(ctx, target); err != nil {
		t.Error(err)
		return false
	}
	last := list.Revision
	for {
		select {
		case e := <-w.Events():
			if e.Object.Revision <= last {
				t.Errorf("revision %d after %d", e.Object.Revision, last)
				return false
			}
			last = e.Object.Revision
			apply(state, e)
			continue
		default:
		}
		if last >= target {
			break
		}
		// The watcher's goroutine may not have had its turn; events up to the
		// target are there, or the target was a write elsewhere.
		e, ok := <-w.Events()
		if !ok {
			t.Error("watch ended")
			return false
		}
		last = e.Object.Revision
		apply(state, e)
	}
	stored, _, _, err := b.store.List(ctx, prefix, "", 0, last)
	if err != nil {
		t.Error(err)
		return false
	}
	if len(stored) != len(state) {
		t.Errorf("at %d: %v put together, %d stored", last, state, len(stored))
		return false
	}
	for _, o := range stored {
		if state[o.Key] != o.Revision {
			t.Errorf("at %d: %s is at %d, stored at %d", last, o.Key, state[o.Key], o.Revision)
			return false
		}
	}
	return true
}

func apply(state map[string]int64, e cache.WatchEvent) {
	var object struct{ Metadata struct{ Name string } }
	if err := json.Unmarshal(e.Object.JSON, &object); err != nil {
		panic(err)
	}
	key := prefix + object.Metadata.Name
	if e.Type == cache.Deleted {
		delete(state, key)
	} else {
		state[key] = e.Object.Revision
	}
}
