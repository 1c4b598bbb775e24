package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/storage"
	"kctl/proto/backoff"
)

// ReflectorOptions are what a Reflector is built from.
type ReflectorOptions struct {
	Storage storage.Reader
	// Prefix is that of every key that a cache may hold, with its trailing slash:
	// "/registry/".
	Prefix string
	Clock  clock.WithTicker
	Logger *zap.Logger
}

// Reflector keeps any number of caches in step with etcd through one list and one
// watch, so that an unused resource costs next to nothing, and all caches learn
// of etcd's progress at once. It is safe for concurrent use.
type Reflector struct {
	options ReflectorOptions

	// revision is that up to which everything was handed to every cache.
	revision atomic.Int64
	// lost is the revision at which etcd was when it went back to a backup, 0 if it never did.
	lost atomic.Int64
	// progress wakes the goroutine that asks etcd for progress.
	progress chan struct{}

	// mu is held while events are handed out. A cache's own mu is taken inside
	// it, never the other way round.
	mu     sync.Mutex
	caches map[string][]*Cache // by their prefix
	listed bool                // the caches have been read, and the watch resumes from there

	waiting sync.Mutex
	waiters []waiter
}

// NewReflector returns a reflector, which does nothing before Run.
func NewReflector(o ReflectorOptions) *Reflector {
	return &Reflector{options: o, progress: make(chan struct{}, 1), caches: map[string][]*Cache{}}
}

var reflectorBackoff = backoff.Policy{Initial: 50 * time.Millisecond, Max: 5 * time.Second, Jitter: 0.2}

// Run feeds the caches until ctx ends. A broken watch resumes where it was;
// only if etcd has dropped the changes since then is everything read again.
func (f *Reflector) Run(ctx context.Context) error {
	failures := 0
	for {
		before := f.revision.Load()
		err := f.follow(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if f.revision.Load() != before {
			failures = 0
		}
		failures++
		delay := reflectorBackoff.Delay(failures)
		f.options.Logger.Warn("watch on etcd broke", zap.String("prefix", f.options.Prefix), zap.Duration("after", delay), zap.Error(err))
		if err := backoff.Sleep(ctx, f.options.Clock, delay); err != nil {
			return err
		}
	}
}

// follow lists if it must, and watches until the watch ends.
func (f *Reflector) follow(ctx context.Context) error {
	resumes := f.hasListed()
	if !resumes {
		objects, revision, _, err := f.options.Storage.List(ctx, f.options.Prefix, "", 0, 0)
		if err != nil {
			return fmt.Errorf("read everything: %w", err)
		}
		f.replace(objects, revision)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch, err := f.options.Storage.Watch(ctx, f.options.Prefix, f.revision.Load())
	if err != nil {
		f.handleWatchError(err)
		return fmt.Errorf("watch: %w", err)
	}
	if resumes {
		if err := f.checkNotOlder(ctx); err != nil {
			return err
		}
	}
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		f.requestProgress(ctx, watch)
	}()
	defer func() { cancel(); <-asked }()
	for events := range watch.Events() {
		f.dispatch(events)
	}
	f.handleWatchError(watch.Err())
	return watch.Err()
}

func (f *Reflector) hasListed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.listed
}

// checkNotOlder returns an error, and makes the reflector read everything again, if etcd is
// at an older revision than it was: its data has been replaced by a backup. A watch on from
// the newer revision would say nothing, and reads would show what is no longer stored. It is
// called once the watch has begun, so that one that is not found older ends with its etcd.
func (f *Reflector) checkNotOlder(ctx context.Context) error {
	revision, err := f.options.Storage.Revision(ctx)
	if err != nil {
		return fmt.Errorf("learn etcd's revision: %w", err)
	}
	seen := f.revision.Load()
	if revision >= seen {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listed = false
	return fmt.Errorf("etcd has gone back from revision %d to %d, as after the restore of a backup: everything is read again", seen, revision)
}

// isLost reports whether a revision that is beyond etcd's current one is one that it had before
// it went back.
func (f *Reflector) isLost(revision, current int64) bool {
	return current < revision && revision <= f.lost.Load()
}

// handleWatchError makes the reflector read everything again if etcd no longer has the next changes.
func (f *Reflector) handleWatchError(err error) {
	if errors.Is(err, storage.ErrCompacted) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.listed = false
	}
}

// replace gives every cache its part of objects, which is all that existed at
// revision, in key order.
func (f *Reflector) replace(objects []storage.Object, revision int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if seen := f.revision.Load(); revision < seen {
		// The store was restored from a backup. No cache may claim meanwhile to be
		// newer than it is.
		f.lost.Store(max(seen, f.lost.Load()))
		f.revision.Store(revision)
	}
	for prefix, caches := range f.caches {
		own := withPrefix(objects, prefix)
		for _, c := range caches {
			if err := storage.Unreadable(own); err != nil {
				c.holdBack(err)
				c.retryLoad()
				continue
			}
			c.loading, c.missed = false, nil
			c.normalize(own)
			c.replace(own, revision)
		}
	}
	f.listed = true
	f.setRevision(revision)
}

// withPrefix returns the objects with the prefix; objects are in key order.
func withPrefix(objects []storage.Object, prefix string) []storage.Object {
	start := sort.Search(len(objects), func(i int) bool { return objects[i].Key >= prefix })
	rest := objects[start:]
	return rest[:sort.Search(len(rest), func(i int) bool { return !strings.HasPrefix(rest[i].Key, prefix) })]
}

// dispatch gives each cache its events, in the order in which etcd sent them.
func (f *Reflector) dispatch(events []storage.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for start := 0; start < len(events); {
		prefix := f.prefixOf(events[start].Object.Key)
		end := start + 1
		for end < len(events) && f.prefixOf(events[end].Object.Key) == prefix {
			end++
		}
		for _, c := range f.caches[prefix] {
			c.receive(events[start:end])
		}
		start = end
	}
	f.setRevision(events[len(events)-1].Object.Revision)
}

// prefixOf is the prefix of the cache that holds key, "" if none does.
func (f *Reflector) prefixOf(key string) string {
	if !strings.HasPrefix(key, f.options.Prefix) {
		return ""
	}
	for end := len(f.options.Prefix); ; {
		if f.caches[key[:end]] != nil {
			return key[:end]
		}
		slash := strings.IndexByte(key[end:], '/')
		if slash < 0 {
			return ""
		}
		end += slash + 1
	}
}

// setRevision notes that everything up to revision has been handed out.
func (f *Reflector) setRevision(revision int64) {
	f.revision.Store(revision)
	f.wakeWaiters(revision)
}

// attach adds a cache, which has to be read by itself if the reflector is already
// running.
func (f *Reflector) attach(c *Cache) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.caches[c.options.Prefix] = append(f.caches[c.options.Prefix], c)
	c.loading = f.listed
}

func (f *Reflector) detach(c *Cache) {
	f.mu.Lock()
	defer f.mu.Unlock()
	rest := slices.DeleteFunc(f.caches[c.options.Prefix], func(other *Cache) bool { return other == c })
	if f.caches[c.options.Prefix] = rest; len(rest) == 0 {
		delete(f.caches, c.options.Prefix)
	}
}
