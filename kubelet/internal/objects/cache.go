package objects

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// cache keeps objects of one kind by name, for as long as they are referred to.
type cache[T any] struct {
	// get asks the API server; refused says that the node was not allowed to read the
	// object before, and that no further pod refers to it since.
	get       func(ctx context.Context, name types.NamespacedName, refused bool) (T, error)
	immutable func(T) bool // immutable objects are never asked for again
	ttl       time.Duration
	clock     clock.PassiveClock

	mu      sync.Mutex
	entries map[types.NamespacedName]*entry[T]
}

type entry[T any] struct {
	references int
	// wanted counts the moments that make older answers insufficient; held is the
	// count when value was asked for.
	wanted, held int
	refused      int // wanted when the node was told last that it may not have it; 0 for never
	has          bool
	value        T
	at           time.Time
	flight       *flight[T]
}

// flight is a request in progress, which several callers may wait for.
type flight[T any] struct {
	asked   int  // entry.wanted when it took off
	refused bool // the one before, asked for as much, was
	done    chan struct{}
	value   T
	err     error
}

func newCache[T any](clock clock.PassiveClock, ttl time.Duration, frozen func(T) bool,
	get func(ctx context.Context, name types.NamespacedName, refused bool) (T, error),
) *cache[T] {
	return &cache[T]{get: get, immutable: frozen, ttl: ttl, clock: clock, entries: map[types.NamespacedName]*entry[T]{}}
}

// addReference makes the cache keep the object, and ask for it again at the next Get.
func (c *cache[T]) addReference(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[name]
	if e == nil {
		e = &entry[T]{}
		c.entries[name] = e
	}
	e.references++
	e.wanted++
}

// renew makes the cache ask for the object again at the next Get, if it keeps it.
func (c *cache[T]) renew(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[name]; e != nil {
		e.wanted++
	}
}

// release undoes one refer.
func (c *cache[T]) release(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[name]
	if e == nil {
		return
	}
	if e.references--; e.references <= 0 {
		delete(c.entries, name)
	}
}

// Get returns the object. It must not be changed.
func (c *cache[T]) Get(ctx context.Context, name types.NamespacedName) (T, error) {
	for {
		c.mu.Lock()
		e := c.entries[name]
		if e == nil {
			c.mu.Unlock()
			return c.get(ctx, name, false)
		}
		if c.fresh(e) {
			value := e.value
			c.mu.Unlock()
			return value, nil
		}
		if f := e.flight; f != nil && f.asked == e.wanted {
			c.mu.Unlock()
			value, err, again := f.wait(ctx)
			if again {
				continue
			}
			return value, err
		}
		f := &flight[T]{asked: e.wanted, refused: e.refused == e.wanted, done: make(chan struct{})}
		e.flight = f
		c.mu.Unlock()
		return c.fetch(ctx, name, e, f)
	}
}

func (c *cache[T]) fresh(e *entry[T]) bool {
	if !e.has {
		return false
	}
	return c.immutable(e.value) || e.held == e.wanted && c.clock.Since(e.at) < c.ttl
}

// fetch makes the request in the caller's own goroutine and context.
func (c *cache[T]) fetch(ctx context.Context, name types.NamespacedName, e *entry[T], f *flight[T]) (T, error) {
	at := c.clock.Now()
	f.value, f.err = c.get(ctx, name, f.refused)
	c.mu.Lock()
	if e.flight == f {
		e.flight = nil
	}
	if apierrors.IsForbidden(f.err) && !f.gaveUp() {
		e.refused = max(e.refused, f.asked)
	}
	if f.err == nil && f.asked >= e.held {
		e.has, e.value, e.at, e.held = true, f.value, at, f.asked
	}
	c.mu.Unlock()
	close(f.done)
	return f.value, f.err
}

// wait waits for another caller's request. If that caller gave up while this
// one has not, the request has to be made again.
func (f *flight[T]) wait(ctx context.Context) (value T, err error, again bool) {
	select {
	case <-f.done:
	case <-ctx.Done():
		return value, ctx.Err(), false
	}
	return f.value, f.err, f.gaveUp() && ctx.Err() == nil
}

// gaveUp says that the caller that made the request gave up before there was an answer.
func (f *flight[T]) gaveUp() bool {
	return errors.Is(f.err, context.Canceled) || errors.Is(f.err, context.DeadlineExceeded)
}
