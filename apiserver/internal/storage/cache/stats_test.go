package cache_test

import (
	"testing"

	"k8s.io/utils/clock"

	"kctl/apiserver/internal/storage/cache"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
)

func TestStats(t *testing.T) {
	b := start(t, etcdtest.Start(t), clock.RealClock{})
	b.current()
	before := b.Stats()
	if before.Objects != 0 || before.Initializations != 1 || before.Changes != 0 || before.Lists != 0 {
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
	if got.Lists != 2 || got.Fetched != 1 || got.Returned != 1 {
		t.Errorf("after two lists: %+v", got)
	}
}

func TestStatsOfACacheThatIsNotReady(t *testing.T) {
	if got := cache.New(cache.Options{Prefix: prefix, Clock: clock.RealClock{}}).Stats(); got.Objects != -1 || got.Initializations != 0 {
		t.Errorf("%+v", got)
	}
}
