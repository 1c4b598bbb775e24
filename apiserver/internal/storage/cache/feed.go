package cache

import (
	"context"
	"errors"
	"fmt"
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

// FeedOptions are what a Feed is built from.
type FeedOptions struct {
	Storage storage.Reader
	// Prefix is that of every key that a cache may hold, with its trailing slash:
	// "/registry/".
	Prefix string
	Clock  clock.WithTicker
	Logger *zap.Logger
}

// Feed keeps any number of caches in step with etcd through one list and one
// watch, so that an unused resource costs next to nothing, and all caches learn
// of etcd's progress at once. It is safe for concurrent use.
type Feed struct {
	options FeedOptions

	// revision is that up to which everything was handed to every cache.
	revision atomic.Int64
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

// NewFeed returns a feed, which does nothing before Run.
func NewFeed(o FeedOptions) *Feed {
	return &Feed{options: o, progress: make(chan struct{}, 1), caches: map[string][]*Cache{}}
}

var feedBackoff = backoff.Policy{Initial: 50 * time.Millisecond, Max: 5 * time.Second, Jitter: 0.2}

// Run feeds the caches until ctx ends. A broken watch resumes where it was;
// only if etcd has dropped the changes since then is everything read again.
func (f *Feed) Run(ctx context.Context) error {
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
		delay := feedBackoff.Delay(failures)
		f.options.Logger.Warn("watch on etcd broke", zap.String("prefix", f.options.Prefix), zap.Duration("after", delay), zap.Error(err))
		select {
		case <-f.options.Clock.After(delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// follow lists if it must, and watches until the watch ends.
func (f *Feed) follow(ctx context.Context) error {
	if !f.hasListed() {
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
		f.lost(err)
		return fmt.Errorf("watch: %w", err)
	}
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		f.askProgress(ctx, watch)
	}()
	defer func() { cancel(); <-asked }()
	for events := range watch.Events() {
		f.handOut(events)
	}
	f.lost(watch.Err())
	return watch.Err()
}

func (f *Feed) hasListed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.listed
}

// lost makes the feed read everything again if etcd no longer has the next changes.
func (f *Feed) lost(err error) {
	if errors.Is(err, storage.ErrCompacted) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.listed = false
	}
}

// replace gives every cache its part of objects, which is all that existed at
// revision, in key order.
func (f *Feed) replace(objects []storage.Object, revision int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if revision < f.revision.Load() {
		// The store was restored from a backup. No cache may claim meanwhile to be
		// newer than it is.
		f.revision.Store(revision)
	}
	for prefix, caches := range f.caches {
		own := part(objects, prefix)
		for _, c := range caches {
			if err := storage.Unreadable(own); err != nil {
				c.holdBack(err)
				c.tryAgain()
				continue
			}
			c.loading, c.missed = false, nil
			c.normalize(own)
			c.replace(own, revision)
		}
	}
	f.listed = true
	f.reached(revision)
}

// part returns the objects with the prefix; objects are in key order.
func part(objects []storage.Object, prefix string) []storage.Object {
	start := sort.Search(len(objects), func(i int) bool { return objects[i].Key >= prefix })
	rest := objects[start:]
	return rest[:sort.Search(len(rest), func(i int) bool { return !strings.HasPrefix(rest[i].Key, prefix) })]
}

// handOut gives each cache its events, in the order in which etcd sent them.
func (f *Feed) handOut(events []storage.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for start := 0; start < len(events); {
		prefix := f.prefixOf(events[start].Object.Key)
		end := start + 1
		for end < len(events) && f.prefixOf(events[end].Object.Key) == prefix {
			end++
		}
		for _, c := range f.caches[prefix] {
			c.take(events[start:end])
		}
		start = end
	}
	f.reached(events[len(events)-1].Object.Revision)
}

// prefixOf is the prefix of the cache that holds key, "" if none does.
func (f *Feed) prefixOf(key string) string {
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

// reached notes that everything up to revision has been handed out.
func (f *Feed) reached(revision int64) {
	f.revision.Store(revision)
	f.wakeWaiters(revision)
}

// attach adds a cache, which has to be read by itself if the feed is already
// running.
func (f *Feed) attach(c *Cache) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.caches[c.options.Prefix] = append(f.caches[c.options.Prefix], c)
	c.loading = f.listed
}

func (f *Feed) detach(c *Cache) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var rest []*Cache
	for _, other := range f.caches[c.options.Prefix] {
		if other != c {
			rest = append(rest, other)
		}
	}
	if rest == nil {
		delete(f.caches, c.options.Prefix)
		return
	}
	f.caches[c.options.Prefix] = rest
}
