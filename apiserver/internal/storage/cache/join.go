package cache

import (
	"context"
	"errors"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"kctl/apiserver/internal/storage"
)

// maxMissed bounds the events that are kept for a cache while it is read by
// itself; with more, it is read again.
const maxMissed = 10_000

// Run keeps the cache in step with etcd until ctx ends, which ends every
// watcher too, and all reads. If the cache has a reflector of its own, that runs here, too.
func (c *Cache) Run(ctx context.Context) error {
	defer func() {
		c.reflector.detach(c)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.setReady(ErrEnded)
		c.endWatchers()
	}()
	if c.options.Reflector != nil {
		return c.keepLoaded(ctx)
	}
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error { return c.reflector.Run(ctx) })
	running.Go(func() error { return c.keepLoaded(ctx) })
	return running.Wait()
}

// keepLoaded reads the cache by itself whenever the reflector goes on without it.
func (c *Cache) keepLoaded(ctx context.Context) error {
	for {
		if err := c.load(ctx); err != nil {
			return err
		}
		select {
		case <-c.retry:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// load reads a cache that joined a running reflector or was held back, until that
// succeeds.
func (c *Cache) load(ctx context.Context) error {
	for failures := 1; c.reflector.shouldLoad(c); failures++ {
		objects, revision, _, err := c.options.Storage.List(ctx, c.options.Prefix, "", 0, 0)
		if err == nil {
			err = c.adopt(objects, revision)
		}
		if err == nil {
			return nil
		}
		delay := reflectorBackoff.Delay(failures)
		if !errors.Is(err, storage.ErrUnreadable) { // which has been reported
			c.options.Logger.Warn("resource not read, trying again",
				zap.String("prefix", c.options.Prefix), zap.Duration("after", delay), zap.Error(err))
		}
		select {
		case <-c.options.Clock.After(delay):
		case <-c.retry:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// shouldLoad reports whether the cache is to be read by itself. What will be read is not
// older than what the reflector has brought.
func (f *Reflector) shouldLoad(c *Cache) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.missed = nil
	return c.loading
}

func (c *Cache) adopt(objects []storage.Object, revision int64) error {
	if err := storage.Unreadable(objects); err != nil {
		return c.reflector.holdBack(c, err)
	}
	c.normalize(objects) // takes time, for which the reflector must not wait
	return c.reflector.adopt(c, objects, revision)
}

// holdBack holds the cache back, unless the reflector has read everything meanwhile.
func (f *Reflector) holdBack(c *Cache, why error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !c.loading {
		return nil
	}
	c.holdBack(why)
	return why
}

var errTooMuchMissed = errors.New("more changed meanwhile than is kept")

// adopt gives the cache what was read at revision, and what happened since. The
// reflector was not beyond revision when the cache joined it, so nothing is missing
// in between.
func (f *Reflector) adopt(c *Cache, objects []storage.Object, revision int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !c.loading {
		return nil // the reflector has read everything meanwhile
	}
	if len(c.missed) > maxMissed {
		return errTooMuchMissed
	}
	missed := c.missed
	c.loading, c.missed = false, nil
	c.replace(objects, revision)
	for i, e := range missed {
		if e.Object.Revision > revision {
			c.receive(missed[i:])
			break
		}
	}
	return nil
}

// receive applies events, or keeps them for when the cache has been read. The
// reflector's mu is held.
func (c *Cache) receive(events []storage.Event) {
	if c.options.ReceivedEvents != nil {
		c.options.ReceivedEvents.Add(float64(len(events)))
	}
	if !c.loading {
		if err := c.apply(events); err != nil {
			c.holdBack(err)
			c.retryLoad()
		}
		return
	}
	if len(c.missed) <= maxMissed {
		c.missed = append(c.missed, events...)
	}
	if c.isHeldBy(events) {
		c.retryLoad()
	}
}
