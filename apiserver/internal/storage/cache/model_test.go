package cache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/cache"
	"kctl/apiserver/internal/storage/etcd"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
)

// The model is what etcd's own client sees: every change once, in order. What
// watchers see through the shared reflector is compared with it, while etcd is
// restarted, revisions are compacted and the reflector's watch is cut.

// seenChange is a change of a key.
type seenChange struct {
	revision int64
	key      string
	deleted  bool
}

// model records every change below /registry/.
type model struct {
	mu      sync.Mutex
	changes []seenChange
}

func (m *model) follow(ctx context.Context, client *clientv3.Client) {
	for answer := range client.Watch(ctx, "/registry/", clientv3.WithPrefix(), clientv3.WithRev(1)) {
		m.mu.Lock()
		for _, e := range answer.Events {
			m.changes = append(m.changes, seenChange{e.Kv.ModRevision, string(e.Kv.Key), e.Type == clientv3.EventTypeDelete})
		}
		m.mu.Unlock()
	}
}

func (m *model) revision() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.changes) == 0 {
		return 0
	}
	return m.changes[len(m.changes)-1].revision
}

// below are the changes of keys with prefix, after one revision and up to
// another.
func (m *model) below(prefix string, after, upTo int64) []seenChange {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []seenChange
	for _, c := range m.changes {
		if strings.HasPrefix(c.key, prefix) && c.revision > after && c.revision <= upTo {
			out = append(out, c)
		}
	}
	return out
}

// stretch is what one consumer saw between two lists: the keys that existed at
// a revision, and the changes after it.
type stretch struct {
	revision int64
	keys     []string
	changes  []seenChange
}

// consumer lists and watches like a client, and lists again only when its
// revision is too old.
type consumer struct {
	cache     *cache.Cache
	prefix    string
	slow      bool
	stretches []*stretch
}

func (c *consumer) run(ctx context.Context, end func() int64) error {
	for {
		list := c.cache.List(cache.Page{Selection: cache.Selection{Prefix: c.prefix}})
		now := &stretch{revision: list.Revision}
		for _, e := range list.Entries {
			now.keys = append(now.keys, e.Key)
		}
		c.stretches = append(c.stretches, now)
		last := list.Revision
		for {
			err := c.watch(ctx, now, &last, end)
			if errors.Is(err, storage.ErrCompacted) {
				break
			}
			if err != nil || last >= end() {
				return err
			}
		}
	}
}

// watch follows until the watch ends, or the revision that end returns has been
// seen.
func (c *consumer) watch(ctx context.Context, now *stretch, last *int64, end func() int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := c.cache.Watch(ctx, cache.WatchOptions{Selection: cache.Selection{Prefix: c.prefix}, Since: *last})
	if err != nil {
		return err
	}
	events := cache.Channel(ctx, w.Events())
	for *last < end() {
		if c.slow {
			for range 200 {
				runtime.Gosched()
			}
		}
		select {
		case e, ok := <-events:
			if !ok {
				return nil
			}
			now.changes = append(now.changes, seenChange{e.Object.Revision, c.prefix + nameOf(e), e.Type == cache.Deleted})
			*last = e.Object.Revision
		case <-time.After(50 * time.Millisecond): // check whether the end is known by now
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func nameOf(e cache.WatchEvent) string {
	_, rest, _ := strings.Cut(string(e.Object.JSON), `"name":"`)
	name, _, _ := strings.Cut(rest, `"`)
	return name
}

// check compares a consumer's stretches with the model.
func (c *consumer) check(t *testing.T, m *model) {
	t.Helper()
	for i, s := range c.stretches {
		there := map[string]bool{}
		for _, change := range m.below(c.prefix, 0, s.revision) {
			there[change.key] = !change.deleted
		}
		for _, key := range s.keys {
			if !there[key] {
				t.Errorf("%s, stretch %d: %s was listed at %d, and not there", c.prefix, i, key, s.revision)
			}
			delete(there, key)
		}
		for key, was := range there {
			if was {
				t.Errorf("%s, stretch %d: %s was there at %d, and not listed", c.prefix, i, key, s.revision)
			}
		}
		upTo := s.revision
		if n := len(s.changes); n > 0 {
			upTo = s.changes[n-1].revision
		}
		if want := m.below(c.prefix, s.revision, upTo); !slices.Equal(s.changes, want) {
			t.Errorf("%s, stretch %d after %d: saw %d changes, there were %d; the first that differ: %s",
				c.prefix, i, s.revision, len(s.changes), len(want), firstDifference(s.changes, want))
		}
	}
}

func firstDifference(got, want []seenChange) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("missed %+v", want[i])
		case i >= len(want):
			return fmt.Sprintf("made up %+v", got[i])
		case got[i] != want[i]:
			return fmt.Sprintf("saw %+v, want %+v", got[i], want[i])
		}
	}
	return "none"
}

const modelWrites = 250 // of each writer

// writeAtRandom creates, updates and deletes keys that belong to this writer
// alone.
func writeAtRandom(ctx context.Context, store storage.Interface, prefix string, writer int) {
	random := rand.New(rand.NewPCG(uint64(writer), 7))
	for n := range modelWrites {
		name := fmt.Sprintf("ns/w%d-%d", writer, random.IntN(6))
		key, value := prefix+name, thing(name, fmt.Sprint(n))
		now, err := store.Get(ctx, key)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			_, _ = store.Create(ctx, key, value, 0)
		case err != nil: // etcd is away; the next round sees whether the last write happened
		case random.IntN(3) == 0:
			_, _ = store.Delete(ctx, key, now.Revision)
		default:
			_, _ = store.Update(ctx, key, now.Revision, value, 0)
		}
	}
}

func TestReflectorAgreesWithEtcd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "e")
	_, embedded := etcdtest.StartIn(t, dir)
	if embedded.Socket == "" {
		t.Skip("the temporary directory's path is too long for a socket: " + dir)
	}
	client := overSocket(t, embedded.Socket)
	store := &breakable{Interface: etcd.NewStore(etcd.Options{Client: client, Clock: clock.RealClock{}})}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	m := &model{}
	go m.follow(ctx, overSocket(t, embedded.Socket))

	feed := newFeed(store)
	resources := []string{"pods", "example.org/things", "leases"}
	var end int64 // the last revision, once it is known
	var mu sync.Mutex
	atEnd := func() int64 {
		mu.Lock()
		defer mu.Unlock()
		if end == 0 {
			return 1 << 62
		}
		return end
	}
	var writing, consuming sync.WaitGroup
	var consumers []*consumer
	background(t, feed.Run)
	for i, resource := range resources {
		prefix := "/registry/" + resource + "/"
		for n := range 2 { // the second joins a running reflector
			c, _ := fed(t, store, feed, resource)
			if err := c.WaitReady(ctx); err != nil {
				t.Fatal(err)
			}
			for _, slow := range []bool{false, true} {
				one := &consumer{cache: c, prefix: prefix, slow: slow}
				consumers = append(consumers, one)
				consuming.Go(func() {
					if err := one.run(ctx, atEnd); err != nil {
						t.Errorf("%s: %v", one.prefix, err)
					}
				})
			}
			writing.Go(func() { writeAtRandom(ctx, store, prefix, 2*i+n) })
		}
	}
	disturb(t, ctx, store, client, m, func() {
		if err := embedded.Stop(); err != nil {
			t.Error(err)
		}
		_, embedded = etcdtest.StartIn(t, dir)
	})
	writing.Wait()
	var last storage.Object
	for _, resource := range resources { // one more change for each, so that every watch has an end
		made, err := store.Create(ctx, "/registry/"+resource+"/ns/end", thing("ns/end", ""), 0)
		if err != nil {
			t.Fatal(err)
		}
		if last.Revision == 0 {
			last = made
		}
	}
	mu.Lock()
	end = last.Revision
	mu.Unlock()
	consuming.Wait()
	for m.revision() < last.Revision+int64(len(resources))-1 && ctx.Err() == nil {
		runtime.Gosched()
	}
	for _, c := range consumers {
		c.check(t, m)
	}
	t.Logf("%d changes; each of %d consumers in up to %d stretches", len(m.changes), len(consumers), longest(consumers))
}

func longest(consumers []*consumer) (n int) {
	for _, c := range consumers {
		n = max(n, len(c.stretches))
	}
	return n
}

// disturb cuts the reflector's watch, once so that its revision is compacted
// meanwhile, and restarts etcd.
func disturb(t *testing.T, ctx context.Context, store *breakable, client *clientv3.Client, m *model, restart func()) {
	t.Helper()
	forward := func(n int64) {
		for from := m.revision(); m.revision() < from+n && ctx.Err() == nil; {
			runtime.Gosched()
		}
	}
	for round := range 3 {
		forward(60)
		mend := store.breakNow()
		forward(30)
		if round == 1 {
			if _, err := client.Compact(ctx, m.revision()); err != nil {
				t.Error(err)
			}
		}
		mend()
		forward(60)
		if round < 2 {
			restart()
		}
	}
}

// overSocket is a client that reconnects at once when etcd comes back.
func overSocket(t *testing.T, socket string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"unix://" + socket},
		Logger:    zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1, MaxDelay: 20 * time.Millisecond},
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}
