package cache_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"k8s.io/utils/clock"

	"kctl/apiserver/internal/storage/cache"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
)

// While many clients write, others list and watch: a list with the events after
// it always equals what is stored.
func TestListAndWatchAgreeUnderLoad(t *testing.T) {
	agreeUnderLoad(t, start(t, etcdtest.Start(t), clock.RealClock{}))
}

// The same with an external etcd, Debian's, whose progress notifications can't
// be trusted.
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

// agree lists, follows some events, and compares with etcd's list at that
// revision.
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
	events := cache.Channel(ctx, w.Events())
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
		case e := <-events:
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
		// The watcher's goroutine may not have run yet; events up to the target
		// exist, or the target was a write elsewhere.
		e, ok := <-events
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
