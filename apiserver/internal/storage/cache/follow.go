package cache

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"kctl/apiserver/internal/storage"
)

// maxMissed bounds the events that are kept for a cache while it is read by
// itself; beyond it it is read again.
const maxMissed = 10_000

// Run keeps the cache in step with etcd until ctx ends, which ends every
// watcher too. Where the cache has a feed of its own, that runs here.
func (c *Cache) Run(ctx context.Context) error {
	defer func() {
		c.feed.detach(c)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.endWatchers()
	}()
	if c.options.Feed == nil {
		return c.feed.Run(ctx)
	}
	if err := c.load(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// load reads a cache that came to a feed under way, until that has succeeded.
func (c *Cache) load(ctx context.Context) error {
	for failures := 1; c.feed.isLoading(c); failures++ {
		objects, revision, _, err := c.options.Storage.List(ctx, c.options.Prefix, "", 0, 0)
		if err == nil {
			c.normalize(objects) // takes its time, and is not for the feed to wait for
			if err = c.feed.adopt(c, objects, revision); err == nil {
				return nil
			}
		}
		delay := feedBackoff.Delay(failures)
		c.options.Logger.Warn("resource not read, trying again", zap.String("prefix", c.options.Prefix), zap.Duration("after", delay), zap.Error(err))
		select {
		case <-c.options.Clock.After(delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (f *Feed) isLoading(c *Cache) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return c.loading
}

var errTooMuchMissed = errors.New("more changed meanwhile than is kept")

// adopt gives the cache what was read at revision, and what happened since.
// The feed was not further than revision when the cache came to it, so nothing
// is missing between them.
func (f *Feed) adopt(c *Cache, objects []storage.Object, revision int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !c.loading {
		return nil // the feed has read everything meanwhile
	}
	if len(c.missed) > maxMissed {
		c.missed = nil
		return errTooMuchMissed
	}
	c.replace(objects, revision)
	for i, e := range c.missed {
		if e.Object.Revision > revision {
			c.apply(c.missed[i:])
			break
		}
	}
	c.loading, c.missed = false, nil
	return nil
}

// take applies events, or keeps them for when the cache has been read. The
// feed's mu is held.
func (c *Cache) take(events []storage.Event) {
	if !c.loading {
		c.apply(events)
		return
	}
	if len(c.missed) <= maxMissed {
		c.missed = append(c.missed, events...)
	}
}
