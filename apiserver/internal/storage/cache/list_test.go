package cache_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/cache"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
)

func TestReadsWhatWasWrittenBefore(t *testing.T) {
	b := start(t, etcdtest.Start(t), clock.RealClock{})
	made := b.create("ns/a", "red")
	b.current()
	e, ok := b.Get(prefix + "ns/a")
	if !ok || string(e.Value) != string(made.Value) || e.Revision != made.Revision {
		t.Errorf("got %+v", e)
	}
	// Other writes advance etcd's revision and nothing here: only a progress
	// request to etcd brings the cache there.
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
		{"next page of a namespace", cache.Page{Selection: cache.Selection{Prefix: prefix + "a/"}, Limit: 1, After: prefix + "a/1"}, "a/2", true, 1},
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

// TestAPageReadsNoMoreThanItNeeds: what pages cost together does not grow with their number.
func TestAPageReadsNoMoreThanItNeeds(t *testing.T) {
	b := start(t, etcdtest.Start(t), clock.RealClock{})
	for i, name := range []string{"a/1", "a/2", "a/3", "a/4", "a/5", "b/1"} {
		b.create(name, []string{"red", "blue"}[i%2])
	}
	b.current()
	for _, c := range []struct {
		name string
		page cache.Page
		want int64
	}{
		{"first", cache.Page{Selection: cache.Selection{Prefix: prefix}, Limit: 2}, 2},
		{"next, of a namespace", cache.Page{Selection: cache.Selection{Prefix: prefix + "a/"}, Limit: 2, After: prefix + "a/1"}, 2},
		{"last", cache.Page{Selection: cache.Selection{Prefix: prefix}, Limit: 2, After: prefix + "a/5"}, 1},
		{"up to the second that is red, which says that there is more", cache.Page{Selection: selectColor("red"), Limit: 1}, 3},
	} {
		before := b.Stats().Memory.Fetched
		b.List(c.page)
		if got := b.Stats().Memory.Fetched - before; got != c.want {
			t.Errorf("%s: %d entries were read, want %d", c.name, got, c.want)
		}
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
		revision  int64
		page      cache.Page
		want      string
		remaining int64
	}{
		{third.Revision, cache.Page{Selection: cache.Selection{Prefix: prefix}}, "ns/a ns/b ns/c", 0},
		{second.Revision, cache.Page{Selection: cache.Selection{Prefix: prefix}}, "ns/a ns/b", 0},
		{third.Revision, cache.Page{Selection: cache.Selection{Prefix: prefix}, Limit: 1}, "ns/a", 2},
		{third.Revision, cache.Page{Selection: selectColor("red"), Limit: 1}, "ns/a", -1},
		{third.Revision, cache.Page{Selection: selectColor("red"), After: prefix + "ns/a"}, "ns/c", 0},
		{b.Revision(), cache.Page{Selection: cache.Selection{Prefix: prefix}}, "ns/a ns/c", 0},
	} {
		got, err := b.ListAt(t.Context(), c.page, c.revision)
		if err != nil || names(got) != c.want || got.Revision != c.revision || got.Remaining != c.remaining || got.More != (c.remaining != 0) {
			t.Errorf("at %d: got %q at %d, more %v, %d left, %v; want %q, %d", c.revision, names(got), got.Revision, got.More, got.Remaining, err, c.want, c.remaining)
		}
	}
}

// TestARevisionExpiresThoughNothingHasChangedSince: a revision that etcd has
// compacted is not read from the cache, either.
func TestARevisionExpiresThoughNothingHasChangedSince(t *testing.T) {
	store, embedded := etcdtest.StartIn(t, t.TempDir())
	b := start(t, store, clock.RealClock{})
	first := b.create("ns/a", "red")
	b.current()
	page := cache.Page{Selection: cache.Selection{Prefix: prefix}}
	put, err := embedded.Client().Put(t.Context(), "/elsewhere", "")
	if err != nil {
		t.Fatal(err)
	}
	b.current()
	if got, err := b.ListAt(t.Context(), page, first.Revision); err != nil || names(got) != "ns/a" {
		t.Fatalf("before it is dropped: %q, %v", names(got), err)
	}
	if _, err := embedded.Client().Compact(t.Context(), put.Header.Revision); err != nil {
		t.Fatal(err)
	}
	if got, err := b.ListAt(t.Context(), page, first.Revision); !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("after it was dropped: %q, %v", names(got), err)
	}
}

// TestRevisionNotInTime: a reader whose time is over before is told the same.
func TestRevisionNotInTime(t *testing.T) {
	b := start(t, etcdtest.Start(t), clocktesting.NewFakeClock(time.Unix(1700000000, 0)))
	b.current()
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if err := b.WaitFor(ctx, 1<<40); !errors.Is(err, storage.ErrFuture) {
		t.Errorf("%v", err)
	}
}

func TestRevisionThatNeverComes(t *testing.T) {
	time0 := clocktesting.NewFakeClock(time.Unix(1700000000, 0))
	b := start(t, etcdtest.Start(t), time0)
	if err := b.WaitFor(t.Context(), b.Revision()); err != nil || b.waited.Load() != 0 {
		t.Errorf("waited for what is there: %v %v", time.Duration(b.waited.Load()), err)
	}
	done := make(chan error, 1)
	go func() { done <- b.WaitFor(t.Context(), 1<<40) }()
	for {
		select {
		case err := <-done:
			var future *cache.FutureError
			if !errors.Is(err, storage.ErrFuture) || !errors.As(err, &future) || future.Current != b.Revision() {
				t.Errorf("got %v", err)
			}
			if waited := time.Duration(b.waited.Load()); waited < 3*time.Second {
				t.Errorf("it is said to have waited for %v", waited)
			}
			return
		default:
			time0.Step(time.Second)
			runtime.Gosched()
		}
	}
}

// TestMeasure: a list's cost is known without reading much more of it than costs
// the most.
func TestMeasure(t *testing.T) {
	b := start(t, etcdtest.Start(t), clock.RealClock{})
	bytes := map[string]int{}
	for _, key := range []string{"a/1", "a/2", "b/1"} {
		b.create(key, "red")
		b.current()
		e, _ := b.Get(prefix + key)
		bytes[key] = len(e.Value)
	}
	for _, c := range []struct {
		prefix                string
		mostKeys, mostBytes   int
		wantKeys, wantInBytes int
	}{
		{"", 100, 1 << 20, 3, bytes["a/1"] + bytes["a/2"] + bytes["b/1"]},
		{"a/", 100, 1 << 20, 2, bytes["a/1"] + bytes["a/2"]},
		{"a/", 1, 1 << 20, 1, bytes["a/1"]},
		{"", 100, 1, 1, bytes["a/1"]},
		{"c/", 100, 1 << 20, 0, 0},
	} {
		if keys, n := b.Measure(prefix+c.prefix, c.mostKeys, c.mostBytes); keys != c.wantKeys || n != c.wantInBytes {
			t.Errorf("%+v: %d keys, %d bytes", c, keys, n)
		}
	}
}
