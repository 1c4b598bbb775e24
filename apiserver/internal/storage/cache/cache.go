package cache

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/third_party/forked/golang/btree"

	"kctl/apiserver/internal/storage"
)

// ErrNotReady: the cache has not read its resource from etcd yet.
var ErrNotReady = errors.New("storage is being read")

// Options are what a Cache is built with.
type Options struct {
	Storage storage.Reader
	// Feed brings the changes; a cache without one makes its own.
	Feed *Feed
	// Prefix is that of the keys to hold, with the slash behind: "/registry/pods/".
	Prefix string
	// Namespaced: behind the prefix stands "namespace/name", else "name".
	Namespaced bool
	// Kind is that of the objects, for bookmarks.
	Kind schema.GroupVersionKind
	// Fields finds the selectable fields of an encoded object, beside
	// metadata.name and metadata.namespace; nil where there are none.
	Fields func(value []byte) (fields.Set, error)
	// Normal brings a stored value into the form in which it is to be seen;
	// nil where every value is. It must not fail: what it can't read stays.
	Normal func(value []byte) []byte
	Clock  clock.WithTicker
	Logger *zap.Logger
}

// Cache holds one resource. Everything in it may be used by any number of
// goroutines once Run runs.
type Cache struct {
	options Options
	feed    *Feed

	mu       sync.RWMutex
	entries  *btree.BTree[*Entry]
	recent   *ring
	changed  int64 // revision of the last change of an entry, or of the list
	watchers audience

	readiness atomic.Pointer[readiness] // written under mu

	// woken are the watchers to wake when mu is free again. It is used under the
	// feed's mu.
	woken []*Watcher

	expected expectations

	// applied is the revision of the last change that was applied, or of the
	// list. It is written under mu and read without.
	applied atomic.Int64

	// A cache that comes to a feed under way, or is held back, is read by itself. What the
	// feed brings meanwhile is kept in missed. Guarded by the feed's mu.
	loading bool
	missed  []storage.Event
	heldBy  string        // the key that it is held back by
	again   chan struct{} // it is worth to try and read it now
}

// New returns a cache that is empty and not ready until Run runs, and its feed
// does. Whoever makes a cache runs it: its end takes it off the feed.
func New(o Options) *Cache {
	c := &Cache{
		options:  o,
		feed:     o.Feed,
		entries:  btree.New(64, func(a, b *Entry) bool { return a.Key < b.Key }),
		recent:   &ring{},
		watchers: newAudience(),
		again:    make(chan struct{}, 1),
	}
	c.readiness.Store(&readiness{known: make(chan struct{})})
	if c.feed == nil {
		c.feed = NewFeed(FeedOptions{Storage: o.Storage, Prefix: o.Prefix, Clock: o.Clock, Logger: o.Logger})
	}
	c.feed.attach(c)
	return c
}

// Revision is up to where the cache has every change. Read under mu it is what
// the entries are at: the feed counts a revision only when its changes have
// been applied, and goes on without a cache that is held back.
func (c *Cache) Revision() int64 {
	if c.Ready() != nil {
		return c.applied.Load()
	}
	return max(c.applied.Load(), c.feed.revision.Load())
}

// Changed is the revision of the last change of an entry, or of the list.
func (c *Cache) Changed() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.changed
}

// Entry is one object. It never changes; a change of the object makes a new
// one. It gives its labels and fields to selectors.
type Entry struct {
	Key      string
	Value    []byte // JSON with resourceVersion; not to be changed
	Revision int64

	namespace, name string // parts of Key
	index           atomic.Pointer[index]
}

// index is what selectors look at, found when one does so first.
type index struct {
	labels pairs
	fields pairs
	err    error
}

func (c *Cache) newEntry(o storage.Object) *Entry {
	e := &Entry{Key: o.Key, Value: o.Value, Revision: o.Revision}
	e.namespace, e.name = splitKey(o.Key[len(c.options.Prefix):])
	return e
}

// splitKey reads "namespace/name" or "name".
func splitKey(key string) (namespace, name string) {
	if i := strings.LastIndexByte(key, '/'); i >= 0 {
		return key[:i], key[i+1:]
	}
	return "", key
}
