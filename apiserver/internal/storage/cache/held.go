package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"kctl/apiserver/internal/storage"
)

// ErrHeldBack: the cache is not what etcd holds, because something of that cannot be
// read.
var ErrHeldBack = errors.New("held back")

// readiness is whether the cache can be read. It is replaced as a whole.
type readiness struct {
	known chan struct{} // closed when it is ready, or known why it is not
	held  error         // why it is held back: of kinds ErrHeldBack and storage.ErrUnreadable
}

// Ready reports whether the cache has read its resource; ErrNotReady if not, ErrHeldBack
// where that is because of an object.
func (c *Cache) Ready() error {
	r := c.readiness.Load()
	select {
	case <-r.known:
		return c.readiness.Load().held
	default:
		return ErrNotReady
	}
}

// WaitReady waits until the cache has read its resource. It does not wait for one that
// is held back: somebody has to put that right first.
func (c *Cache) WaitReady(ctx context.Context) error {
	if err := c.Ready(); !errors.Is(err, ErrNotReady) {
		return err
	}
	select {
	case <-c.readiness.Load().known:
		return c.Ready()
	case <-c.options.Clock.After(freshDeadline):
		return ErrNotReady
	case <-ctx.Done():
		return ctx.Err()
	}
}

// setReady replaces the readiness. The cache's mu is held.
func (c *Cache) setReady(held error) {
	known := c.readiness.Load().known
	c.readiness.Store(&readiness{known: known, held: held})
	select {
	case <-known:
	default:
		close(known)
	}
}

// holdBack keeps the cache as it was, for nobody to read, until its resource can be read
// as a whole: no list may be without an object because that is broken, or was sealed
// with a key that is lost. The feed's mu is held, and other caches go on.
func (c *Cache) holdBack(why error) {
	if !errors.Is(c.Ready(), ErrHeldBack) {
		c.options.Logger.Error("resource held back, because a stored value cannot be read", zap.Error(why))
	}
	c.loading, c.missed = true, nil
	c.heldBy = ""
	if of := (*storage.KeyError)(nil); errors.As(why, &of) {
		c.heldBy = of.Key
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setReady(fmt.Errorf("%w: %w", ErrHeldBack, why))
	c.endWatchers()
}

// tryAgain has what could not be read be read once more, without waiting.
func (c *Cache) tryAgain() {
	select {
	case c.again <- struct{}{}:
	default:
	}
}

// isHeldBy: something has become of the object that the cache is held back by. The feed's mu
// is held.
func (c *Cache) isHeldBy(events []storage.Event) bool {
	for _, e := range events {
		if e.Object.Key == c.heldBy {
			return true
		}
	}
	return false
}

// HeldBack are the prefixes, within that of the feed, of the caches that are held back,
// sorted.
func (f *Feed) HeldBack() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for prefix, caches := range f.caches {
		for _, c := range caches {
			if errors.Is(c.Ready(), ErrHeldBack) {
				out = append(out, strings.Trim(strings.TrimPrefix(prefix, f.options.Prefix), "/"))
			}
		}
	}
	slices.Sort(out)
	return out
}
