package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"kctl/apiserver/internal/storage"
)

// maxFreshnessWait is how long a reader waits for the cache to reach a revision;
// upstream's.
const maxFreshnessWait = 3 * time.Second

// FutureError: the cache did not reach the requested revision.
type FutureError struct{ Wanted, Current int64 }

func (e *FutureError) Error() string {
	return fmt.Sprintf("Too large resource version: %d, current: %d", e.Wanted, e.Current)
}

// Is makes the error one of kind storage.ErrFuture.
func (e *FutureError) Is(target error) bool { return target == storage.ErrFuture }

// waiter waits for the reflector to reach a revision.
type waiter struct {
	revision int64
	reached  chan struct{}
}

// WaitCurrent waits until the cache has everything that was written before the
// call, also by other servers.
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
	if c.Revision() >= revision {
		return nil
	}
	began := c.options.Clock.Now()
	err := c.reflector.wait(ctx, revision)
	if c.options.ReadWaited != nil {
		c.options.ReadWaited(c.options.Clock.Since(began))
	}
	if late := (*FutureError)(nil); errors.As(err, &late) {
		late.Current = c.Revision() // the reflector may not have seen any change since the list
	}
	return err
}

func (f *Reflector) wait(ctx context.Context, revision int64) error {
	w, waits := f.addWaiter(revision)
	if !waits {
		return nil
	}
	select {
	case f.progress <- struct{}{}:
	default:
	}
	timeout := f.options.Clock.NewTimer(maxFreshnessWait)
	defer timeout.Stop()
	select {
	case <-w.reached:
		return nil
	case <-timeout.C():
		f.dropWaiter(w)
		return &FutureError{Wanted: revision, Current: f.revision.Load()}
	case <-ctx.Done():
		f.dropWaiter(w)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			// A watch with a short timeout: no call of etcd is late.
			return &FutureError{Wanted: revision, Current: f.revision.Load()}
		}
		return ctx.Err()
	}
}

func (f *Reflector) addWaiter(revision int64) (waiter, bool) {
	f.waiting.Lock()
	defer f.waiting.Unlock()
	if f.revision.Load() >= revision {
		return waiter{}, false
	}
	w := waiter{revision: revision, reached: make(chan struct{})}
	f.waiters = append(f.waiters, w)
	return w, true
}

func (f *Reflector) dropWaiter(w waiter) {
	f.waiting.Lock()
	defer f.waiting.Unlock()
	f.waiters = slices.DeleteFunc(f.waiters, func(other waiter) bool { return other == w })
}

func (f *Reflector) hasWaiters() bool {
	f.waiting.Lock()
	defer f.waiting.Unlock()
	return len(f.waiters) > 0
}

// wakeWaiters releases those that wait for revision or less.
func (f *Reflector) wakeWaiters(revision int64) {
	f.waiting.Lock()
	defer f.waiting.Unlock()
	if len(f.waiters) == 0 {
		return
	}
	f.waiters = slices.DeleteFunc(f.waiters, func(w waiter) bool {
		if w.revision > revision {
			return false
		}
		close(w.reached)
		return true
	})
}

// progressRetryInterval is how long to wait for an answer to RequestProgress: etcd
// drops requests that come while its watch is behind.
const progressRetryInterval = 20 * time.Millisecond

// requestProgress keeps asking etcd for progress while there are waiters: the last
// write may not have been to one of the reflector's keys.
func (f *Reflector) requestProgress(ctx context.Context, watch storage.Watch) {
	for {
		select {
		case <-f.progress:
		case <-ctx.Done():
			return
		}
		for f.hasWaiters() {
			if err := watch.RequestProgress(ctx); err != nil && ctx.Err() == nil {
				f.options.Logger.Debug("progress not asked for", zap.String("prefix", f.options.Prefix), zap.Error(err))
			}
			select {
			case <-f.options.Clock.After(progressRetryInterval):
			case <-f.progress:
			case <-ctx.Done():
				return
			}
		}
	}
}
