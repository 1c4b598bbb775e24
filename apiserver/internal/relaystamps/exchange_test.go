package relaystamps

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
	"kctl/proto/relay"
)

// mortal is a store whose process can be killed: it writes nothing more.
type mortal struct {
	Store
	dead atomic.Bool
}

func (m *mortal) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Object, error) {
	if m.dead.Load() {
		return storage.Object{}, errors.New("killed")
	}
	return m.Store.Create(ctx, key, value, ttl)
}

// member is a server that takes part in an exchange.
type member struct {
	*Exchange
	ring  *Ring
	store *mortal
	stop  func()
}

func join(t *testing.T, store Store, name string) *member {
	t.Helper()
	m := &member{ring: NewRing(4), store: &mortal{Store: store}}
	m.Exchange = NewExchange(m.ring, m.store, "/registry"+Prefix, clock.RealClock{}, zap.NewNop())
	m.Introduce(name)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := m.Run(ctx); err != nil { // it would end the server
			t.Errorf("the exchange of %s ended with %v", name, err)
		}
	})
	m.stop = func() { cancel(); running.Wait() }
	t.Cleanup(m.stop)
	return m
}

// awaitServers asks m until exactly these have been asked; a name of a silent one ends with "!".
func awaitServers(t *testing.T, m *member, want ...string) relay.Trace {
	t.Helper()
	deadline := time.Now().Add(time.Minute) // only a failure takes that long
	for {
		found := m.Trace(t.Context(), "shop", "web")
		var names []string
		for _, s := range found.Servers {
			if s.Silent {
				s.Name += "!"
			}
			names = append(names, s.Name)
		}
		if slices.Equal(names, want) {
			return found
		}
		if time.Now().After(deadline) {
			t.Fatalf("servers %v, want %v", names, want)
		}
	}
}

func TestServersPutTogetherWhatTheyKnow(t *testing.T) {
	store := etcdtest.Start(t)
	a, b, c := join(t, store, "a:1"), join(t, store, "b:1"), join(t, store, "c:1")
	awaitServers(t, a, "a:1", "b:1", "c:1")
	awaitServers(t, b, "b:1", "a:1", "c:1")

	b.ring.Add("shop", "web", "old", stamp(relay.ServerStored, -9)) // it has not heard of the new one
	c.ring.Add("shop", "web", "1", stamp(relay.ServerWatched, 2), stamp(relay.ServerBound, 5))
	a.ring.Add("shop", "web", "1", stamp(relay.ServerStored, 3), stamp(relay.ServerWatched, 4))
	want := []relay.Stamp{stamp(relay.ServerStored, 3), stamp(relay.ServerWatched, 4), stamp(relay.ServerBound, 5)}
	for _, m := range []*member{a, b, c} {
		if found := m.Trace(t.Context(), "shop", "web"); found.UID != "1" || !slices.EqualFunc(found.Stamps, want, equal) {
			t.Errorf("%s knows %v, want %v", m.self.Name, found, want)
		}
	}
	if found := a.Trace(t.Context(), "shop", "none"); found.UID != "" || found.Stamps == nil || len(found.Stamps) > 0 || len(found.Servers) != 3 {
		t.Errorf("of a pod that nobody knows: %+v", found)
	}

	// A kubelet's patches come to whichever server its connection leads to.
	first, whole := ended("web", 1, 7), ended("web", 1, 7)
	whole.Started = start.Add(8)
	b.ring.AddRestarts("shop", "web", "1", whole)
	c.ring.AddRestarts("shop", "web", "1", first, ended("web", 2, 9))
	again := []relay.Restart{whole, ended("web", 2, 9)}
	for _, m := range []*member{a, b, c} {
		if found := m.Trace(t.Context(), "shop", "web"); !slices.EqualFunc(found.Restarts, again, sameRestart) {
			t.Errorf("%s knows %+v, want %+v", m.self.Name, found.Restarts, again)
		}
	}

	c.stop()
	if found := awaitServers(t, a, "a:1", "b:1"); len(found.Stamps) != 2 {
		t.Errorf("without c: %v", found.Stamps)
	}
}

func sameRestart(a, b relay.Restart) bool {
	return a.Container == b.Container && a.Number == b.Number && a.Cause == b.Cause && a.Ended.Equal(b.Ended) && a.Started.Equal(b.Started)
}

func equal(a, b relay.Stamp) bool { return a.Hop == b.Hop && a.At.Equal(b.At) }

// A server that has been killed is named, not waited for again, and gone once it has been started
// anew.
func TestAServerIsSilent(t *testing.T) {
	store := etcdtest.Start(t)
	a, b := join(t, store, "a:1"), join(t, store, "b:1")
	a.ring.Add("shop", "web", "1", stamp(relay.ServerStored, 1))
	awaitServers(t, a, "a:1", "b:1")
	b.store.dead.Store(true)
	b.stop()
	if found := awaitServers(t, a, "a:1", "b:1!"); len(found.Stamps) != 1 {
		t.Errorf("stamps %v", found.Stamps)
	}
	a.mu.Lock()
	if awaited := a.others.awaited(); len(awaited) > 0 {
		t.Errorf("%v are waited for", awaited)
	}
	a.mu.Unlock()
	again := join(t, store, "b:1")
	found := awaitServers(t, a, "a:1", "b:1")
	if !found.Servers[1].Started.Equal(again.self.Started) {
		t.Errorf("b has run since %v, want %v", found.Servers[1].Started, again.self.Started)
	}
}

// A server that ends answers requests for a while yet. It does not ask, as the others would wait
// for it the next time.
func TestWhoHasLeftAsksNobody(t *testing.T) {
	store := etcdtest.Start(t)
	a, b := join(t, store, "a:1"), join(t, store, "b:1")
	awaitServers(t, a, "a:1", "b:1")
	awaitServers(t, b, "b:1", "a:1")
	b.stop()
	awaitServers(t, a, "a:1")
	if found := b.Trace(t.Context(), "shop", "web"); len(found.Servers) != 2 || !found.Servers[1].Silent {
		t.Errorf("b has been answered by %+v", found.Servers)
	}
	c := join(t, store, "c:1") // what a has heard before c is noted
	awaitServers(t, a, "a:1", "c:1")
	awaitServers(t, c, "c:1", "a:1")
}

// Who does not wait for the answers has not found anybody silent.
func TestAnAskerGoesAway(t *testing.T) {
	m := join(t, etcdtest.Start(t), "a:1")
	m.mu.Lock()
	m.others.heard("x", relay.Server{Name: "x:1"})
	m.mu.Unlock()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if found := m.Trace(gone, "shop", "web"); len(found.Servers) != 2 || found.Servers[1].Silent {
		t.Errorf("%+v", found.Servers)
	}
}

// What etcd does not carry leaves a server with what it knows itself.
func TestAServerAlone(t *testing.T) {
	m := join(t, etcdtest.Start(t), "a:1")
	m.ring.Add("shop", "web", "1", stamp(relay.ServerStored, 1))
	awaitServers(t, m, "a:1")
	m.mu.Lock()
	m.others.heard("x", relay.Server{Name: "x:1"})
	m.mu.Unlock()
	m.store.dead.Store(true)
	if found := awaitServers(t, m, "a:1", "x:1!"); len(found.Stamps) != 1 {
		t.Errorf("stamps %v", found.Stamps)
	}
}

func TestOthersAreForgotten(t *testing.T) {
	o := others{}
	for i := range 2 * maxOthers {
		o.heard(string(rune('a'+i)), relay.Server{Name: "n"})
	}
	if len(o) != maxOthers {
		t.Errorf("%d are known", len(o))
	}
	o.notHeard(o.awaited(), start)
	if got := o.servers(relay.Server{}, start.Add(forgotten)); len(got) != maxOthers || !got[0].Silent {
		t.Errorf("%d are known", len(got))
	}
	if got := o.servers(relay.Server{}, start.Add(forgotten+1)); len(got) > 0 || len(o) > 0 {
		t.Errorf("%v are not forgotten", got)
	}
}
