package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"kctl/apiserver/internal/storage"
	"kctl/proto/backoff"
)

var followBackoff = backoff.Policy{Initial: 50 * time.Millisecond, Max: 5 * time.Second, Jitter: 0.2}

// Run keeps the cache in step with etcd until ctx ends, which ends every
// watcher too. A watch that breaks goes on from where it was; only where etcd
// has dropped the changes since is everything read again.
func (c *Cache) Run(ctx context.Context) error {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.endWatchers()
	}()
	failures := 0
	listed := false
	for {
		before := c.Revision()
		err := c.follow(ctx, &listed)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if c.Revision() != before {
			failures = 0
		}
		failures++
		delay := followBackoff.Delay(failures)
		c.options.Logger.Warn("watch on etcd broke", zap.String("prefix", c.options.Prefix), zap.Duration("retry", delay), zap.Error(err))
		select {
		case <-c.options.Clock.After(delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// follow lists if it must, and watches until the watch ends.
func (c *Cache) follow(ctx context.Context, listed *bool) error {
	if !*listed {
		objects, revision, _, err := c.options.Storage.List(ctx, c.options.Prefix, "", 0, 0)
		if err != nil {
			return fmt.Errorf("read everything: %w", err)
		}
		c.replace(objects, revision)
		*listed = true
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch, err := c.options.Storage.Watch(ctx, c.options.Prefix, c.Revision())
	if err != nil {
		*listed = !errors.Is(err, storage.ErrCompacted)
		return fmt.Errorf("watch: %w", err)
	}
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		c.askProgress(ctx, watch)
	}()
	defer func() { cancel(); <-asked }()
	for events := range watch.Events() {
		c.apply(events)
	}
	if errors.Is(watch.Err(), storage.ErrCompacted) {
		*listed = false
	}
	return watch.Err()
}

// progressAgain is how long to wait for an answer to RequestProgress: etcd
// drops requests that come while its watch is behind.
const progressAgain = 20 * time.Millisecond

// askProgress asks etcd how far it is for as long as somebody waits.
func (c *Cache) askProgress(ctx context.Context, watch storage.Watch) {
	for {
		select {
		case <-c.progress:
		case <-ctx.Done():
			return
		}
		for c.someoneWaits() {
			if err := watch.RequestProgress(ctx); err != nil && ctx.Err() == nil {
				c.options.Logger.Debug("progress not asked for", zap.String("prefix", c.options.Prefix), zap.Error(err))
			}
			select {
			case <-c.options.Clock.After(progressAgain):
			case <-c.progress:
			case <-ctx.Done():
				return
			}
		}
	}
}
