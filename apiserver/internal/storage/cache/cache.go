package cache

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/third_party/forked/golang/btree"

	"kctl/apiserver/internal/storage"
)

// ErrNotReady: the cache has not read its resource from etcd yet.
var ErrNotReady = errors.New("storage is being read")

// ErrEnded: the cache's Run has ended, so that nothing new arrives. Whoever asks for the
// resource again finds another cache, or that it is no longer served.
var ErrEnded = errors.New("storage is no longer read")

// Options are what a Cache is built from.
type Options struct {
	Storage storage.Reader
	// Reflector brings the changes; a cache without one makes its own.
	Reflector *Reflector
	// Prefix is that of the keys to hold, with its trailing slash: "/registry/pods/".
	Prefix string
	// Namespaced: "namespace/name" follows the prefix, otherwise "name".
	Namespaced bool
	// Kind is that of the objects, for bookmarks.
	Kind schema.GroupVersionKind
	// Fields finds the selectable fields of an encoded object, besides
	// metadata.name and metadata.namespace; nil if there are none.
	Fields func(value []byte) (fields.Set, error)
	// Normalize brings a stored value into the form that clients see; nil if all
	// values are in it. It must not fail: what it can't read stays as it is.
	Normalize func(value []byte) []byte
	// ReceivedEvents counts the changes that the reflector brings; nil where nobody does.
	ReceivedEvents prometheus.Counter
	// ReadWaited is called with how long a reader waited that had to; nil where nobody
	// measures.
	ReadWaited func(time.Duration)
	Clock      clock.WithTicker
	Logger     *zap.Logger
}

// Cache holds one resource. Everything in it may be used by any number of
// goroutines once Run runs.
type Cache struct {
	options   Options
	reflector *Reflector

	mu                 sync.RWMutex
	entries            *btree.BTree[*Entry]
	recent             *ring
	lastChangeRevision int64 // revision of the last change of an entry, or of the list
	initializations    int64
	watchers           watcherSet

	// unchanged is a snapshot of entries, nil if they have changed since. It is written under
	// mu, and by readers under snapshotting, too.
	unchanged    *btree.BTree[*Entry]
	snapshotting sync.Mutex

	readiness atomic.Pointer[readiness] // written under mu

	// toWake are the watchers to wake once mu is free again. Guarded by the reflector's
	// mu.
	toWake []*Watcher

	expected       expectations
	memory, stored counter // of lists

	// appliedRevision is the revision of the last change that was applied, or of the
	// list. It is written under mu and read without.
	appliedRevision atomic.Int64

	// A cache that joins a running reflector, or is held back, is read by itself; missed keeps
	// what the reflector brings meanwhile. Guarded by the reflector's mu.
	loading bool
	missed  []storage.Event
	heldBy  string        // the key because of which it is held back
	retry   chan struct{} // it is worth trying to read it now
}

// New returns a cache that is empty and not ready until its Run and its reflector's
// run. The caller must run it: when Run ends, the cache leaves the reflector.
func New(o Options) *Cache {
	c := &Cache{
		options:   o,
		reflector: o.Reflector,
		entries:   btree.New(64, func(a, b *Entry) bool { return a.Key < b.Key }),
		recent:    &ring{},
		watchers:  newWatcherSet(),
		retry:     make(chan struct{}, 1),
	}
	c.readiness.Store(&readiness{known: make(chan struct{})})
	if c.reflector == nil {
		c.reflector = NewReflector(ReflectorOptions{Storage: o.Storage, Prefix: o.Prefix, Clock: o.Clock, Logger: o.Logger})
	}
	c.reflector.attach(c)
	return c
}

// Revision is the revision up to which the cache has every change. Read under
// mu, it is that of the entries: the reflector counts a revision only when its
// changes have been applied, and goes on without a cache that is held back.
func (c *Cache) Revision() int64 {
	if c.Ready() != nil {
		return c.appliedRevision.Load()
	}
	return max(c.appliedRevision.Load(), c.reflector.revision.Load())
}

// LastChangeRevision is the revision of the last change of an entry, or of the list.
func (c *Cache) LastChangeRevision() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.lastChangeRevision
}

// Entry is one object. It is immutable; a change of the object makes a new one.
// Selectors read its labels and fields.
type Entry struct {
	Key      string
	Value    []byte // JSON with resourceVersion; must not be changed
	Revision int64

	namespace, name string // parts of Key
	index           atomic.Pointer[index]
}

// index is what selectors look at, computed when the first one does.
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
