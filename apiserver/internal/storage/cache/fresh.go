package cache

import (
	"context"
	"fmt"
	"slices"
	"time"

	"kctl/apiserver/internal/storage"
)

// freshDeadline is how long a reader waits for the cache to come to a revision;
// upstream's.
const freshDeadline = 3 * time.Second

// FutureError says that the cache did not come to the revision asked for.
type FutureError struct{ Wanted, Current int64 }

func (e *FutureError) Error() string {
	return fmt.Sprintf("Too large resource version: %d, current: %d", e.Wanted, e.Current)
}

// Is makes the error one of kind storage.ErrFuture.
func (e *FutureError) Is(target error) bool { return target == storage.ErrFuture }

// waiter waits for the cache to come to a revision.
type waiter struct {
	revision int64
	reached  chan struct{}
}

// WaitReady waits until the cache has read its resource.
func (c *Cache) WaitReady(ctx context.Context) error {
	select {
	case <-c.ready:
		return nil
	default:
	}
	select {
	case <-c.ready:
		return nil
	case <-c.options.Clock.After(freshDeadline):
		return ErrNotReady
	case <-ctx.Done():
		return ctx.Err()
	}
}

// WaitCurrent waits until the cache has everything that was written before the
// call, by whomever.
func (c *Cache) WaitCurrent(ctx context.Context) error {
	if err := c.WaitReady(ctx); err != nil {
		return err
	}
	revision, err := c.options.Storage.Revision(ctx)
	if err != nil {
		return fmt.Errorf("learn etcd's revision: %w", err)
	}
	return c.WaitFor(ctx, revision)
}

// WaitFor waits until the cache has every change up to revision.
func (c *Cache) WaitFor(ctx context.Context, revision int64) error {
	if err := c.WaitReady(ctx); err != nil {
		return err
	}
	if c.revision.Load() >= revision {
		return nil
	}
	w, waits := c.addWaiter(revision)
	if !waits {
		return nil
	}
	select {
	case c.progress <- struct{}{}:
	default:
	}
	select {
	case <-w.reached:
		return nil
	case <-c.options.Clock.After(freshDeadline):
		c.dropWaiter(w)
		return &FutureError{Wanted: revision, Current: c.Revision()}
	case <-ctx.Done():
		c.dropWaiter(w)
		return ctx.Err()
	}
}

func (c *Cache) addWaiter(revision int64) (waiter, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.revision.Load() >= revision {
		return waiter{}, false
	}
	w := waiter{revision: revision, reached: make(chan struct{})}
	c.waiters = append(c.waiters, w)
	return w, true
}

func (c *Cache) dropWaiter(w waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiters = slices.DeleteFunc(c.waiters, func(other waiter) bool { return other == w })
}

func (c *Cache) someoneWaits() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.waiters) > 0
}

// wakeWaiters lets go all who waited for revision or less.
func (c *Cache) wakeWaiters(revision int64) {
	if len(c.waiters) == 0 {
		return
	}
	c.waiters = slices.DeleteFunc(c.waiters, func(w waiter) bool {
		if w.revision > revision {
			return false
		}
		close(w.reached)
		return true
	})
}
