package cache_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/storage/cache"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
)

func TestStats(t *testing.T) {
	b := start(t, etcdtest.Start(t), clock.RealClock{})
	b.current()
	before := b.Stats()
	if before.Objects != 0 || before.Initializations != 1 || before.Changes != 0 || before.Memory != (cache.Listed{}) ||
		before.Stored != (cache.Listed{Lists: 1}) {
		t.Errorf("at first: %+v", before)
	}
	red := b.create("ns/a", "red")
	blue := b.create("ns/b", "blue")
	b.delete(red)
	b.current()
	b.List(cache.Page{Selection: cache.Selection{Prefix: prefix}, Limit: 1})
	b.List(cache.Page{Selection: cache.Selection{Prefix: prefix + "other/"}})
	got := b.Stats()
	if got.Objects != 1 || got.Changes != 3 || got.Revision <= blue.Revision || got.Capacity < 3 {
		t.Errorf("after three changes: %+v", got)
	}
	if want := (cache.Listed{Lists: 2, Fetched: 1, Returned: 1}); got.Memory != want {
		t.Errorf("after two lists: %+v, want %+v", got.Memory, want)
	}
	for _, p := range []cache.Page{
		{Selection: cache.Selection{Prefix: prefix}, Limit: 1},
		{Selection: cache.Selection{Prefix: prefix, Fields: fields.ParseSelectorOrDie("color=red")}},
	} {
		if _, err := b.ListStored(t.Context(), p, red.Revision); err != nil {
			t.Fatal(err)
		}
	}
	if want := (cache.Listed{Lists: 3, Fetched: 2, Evaluated: 2, Returned: 2}); b.Stats().Stored != want {
		t.Errorf("after two lists of the past: %+v, want %+v", b.Stats().Stored, want)
	}
}

func TestStatsOfACacheThatIsNotReady(t *testing.T) {
	if got := cache.New(cache.Options{Prefix: prefix, Clock: clock.RealClock{}}).Stats(); got.Objects != -1 || got.Initializations != 0 {
		t.Errorf("%+v", got)
	}
}
