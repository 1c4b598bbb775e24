package objects

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/rest"
)

// kind is what a cache knows of its objects.
type kind[T core.Object] struct {
	name      string // what errors call it
	resource  core.Resource
	create    func() T
	immutable func(T) bool // immutable objects are never asked for again, nor watched
}

// cache keeps objects of one kind by name, for as long as they are referred to.
type cache[T core.Object] struct {
	kind[T]
	client   *rest.Client // nil for no API server
	clock    clock.Clock
	strategy Strategy
	logger   *zap.Logger // of watches

	mu       sync.Mutex
	entries  map[types.NamespacedName]*entry[T]
	watching context.Context // of all watches; nil while there are to be none
	watches  sync.WaitGroup
}

type entry[T any] struct {
	references int
	// wanted counts the moments that make older answers insufficient; held is the
	// count when value was asked for, and required the count when the last pod came,
	// which must not see what was held before, whether the API answers or not.
	wanted, held, required int
	refused                int // wanted when the node was told last that it may not have it; 0 for never
	has                    bool
	value                  T
	at                     time.Time
	flight                 *flight[T]

	endWatch context.CancelFunc // nil without a watch
	watched  bool               // the watch has told how things are, and is going to tell of every change
	lost     int                // how often it was told that there is no such object
}

// flight is a request in progress, which several callers may wait for.
type flight[T any] struct {
	asked   int  // entry.wanted when it took off
	lost    int  // entry.lost at the time
	refused bool // the one before, asked for as much, was
	done    chan struct{}
	value   T
	err     error
	// gaveUp says that the caller that made the request did before there was an answer. The error does
	// not tell: that of a dial or an answer that takes too long is context.DeadlineExceeded, too.
	gaveUp bool
}

func newCache[T core.Object](client *rest.Client, clock clock.Clock, strategy Strategy, logger *zap.Logger, of kind[T]) *cache[T] {
	return &cache[T]{
		kind: of, client: client, clock: clock, strategy: strategy, entries: map[types.NamespacedName]*entry[T]{},
		logger: logger.WithOptions(zap.IncreaseLevel(zap.ErrorLevel)), // others tell of an outage, and not for each object
	}
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
	e.required = e.wanted
	if e.references == 1 {
		c.watch(name, e)
	}
}

// renew makes the cache ask for the object again at the next Get, if it keeps it.
func (c *cache[T]) renew(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[name]; e != nil {
		e.wanted++
	}
}

// release undoes one addReference.
func (c *cache[T]) release(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[name]
	if e == nil {
		return
	}
	if e.references--; e.references <= 0 {
		delete(c.entries, name)
		e.unwatch()
	}
}

// Get returns the object. It must not be changed.
func (c *cache[T]) Get(ctx context.Context, name types.NamespacedName) (T, error) {
	for {
		c.mu.Lock()
		e := c.entries[name]
		if e == nil {
			c.mu.Unlock()
			return c.ask(ctx, name, false)
		}
		if c.fresh(e) {
			value, has := e.value, e.has
			c.mu.Unlock()
			if !has {
				return value, c.notFound(name)
			}
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
		f := &flight[T]{asked: e.wanted, lost: e.lost, refused: e.refused == e.wanted, done: make(chan struct{})}
		e.flight = f
		c.mu.Unlock()
		return c.fetch(ctx, name, e, f)
	}
}

// fresh tells whether what is known of the object, or that there is none, needs no request.
func (c *cache[T]) fresh(e *entry[T]) bool {
	switch {
	case c.strategy == kubeletv1beta1.GetChangeDetectionStrategy:
		return false
	case e.has && c.immutable(e.value):
		return true
	case e.held != e.wanted:
		return false
	}
	return e.watched || e.has && c.clock.Since(e.at) < ttl
}

// fetch makes the request in the caller's own goroutine and context.
func (c *cache[T]) fetch(ctx context.Context, name types.NamespacedName, e *entry[T], f *flight[T]) (T, error) {
	at := c.clock.Now()
	f.value, f.err = c.ask(ctx, name, f.refused)
	f.gaveUp = f.err != nil && ctx.Err() != nil
	c.mu.Lock()
	if e.flight == f {
		e.flight = nil
	}
	c.land(name, e, f, at)
	c.mu.Unlock()
	close(f.done)
	return f.value, f.err
}

// land takes into e what a request brought, unless e has something newer by now.
func (c *cache[T]) land(name types.NamespacedName, e *entry[T], f *flight[T], at time.Time) {
	switch {
	case f.gaveUp:
	case f.err == nil:
		if f.asked < e.held || f.lost != e.lost {
			return
		}
		if e.held = f.asked; e.watched && e.has && core.Older(f.value, e.value) {
			f.value = e.value // the watch was quicker
			return
		}
		e.has, e.value, e.at = true, f.value, at
	case apierrors.IsNotFound(f.err):
		if !e.watched {
			e.lose()
		} else if !e.has { // else the watch is going to tell
			e.held = max(e.held, f.asked)
		}
	default:
		if apierrors.IsForbidden(f.err) {
			e.refused = max(e.refused, f.asked)
		}
		// While the API does not answer, pods go on with what they have.
		switch {
		case e.held < e.required || c.strategy == kubeletv1beta1.GetChangeDetectionStrategy:
		case e.has:
			f.value, f.err = e.value, nil
		case e.watched:
			f.err = c.notFound(name)
		}
	}
}

// lose keeps that there is no object.
func (e *entry[T]) lose() {
	var none T
	e.has, e.value = false, none
	e.lost++
}

// ask reads the object from the API server; refused says that the node was not allowed
// to before, and that no further pod refers to it since.
func (c *cache[T]) ask(ctx context.Context, name types.NamespacedName, refused bool) (T, error) {
	object := c.create()
	if c.client == nil {
		return object, errNoServer
	}
	err := allowed(ctx, c.clock, refused, func() error {
		return c.client.Resource(c.resource, name.Namespace).Get(ctx, name.Name, object)
	})
	if apierrors.IsNotFound(err) {
		err = c.notFound(name)
	}
	return object, err
}

// notFound names a missing object as upstream's kubelet does: by its kind in the
// singular.
func (c *cache[T]) notFound(name types.NamespacedName) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: c.name}, name.Name)
}

// wait waits for another caller's request. If that caller gave up while this
// one has not, the request has to be made again.
func (f *flight[T]) wait(ctx context.Context) (value T, err error, again bool) {
	select {
	case <-f.done:
	case <-ctx.Done():
		return value, ctx.Err(), false
	}
	return f.value, f.err, f.gaveUp && ctx.Err() == nil
}
