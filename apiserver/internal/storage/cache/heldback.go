package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"kctl/apiserver/internal/storage"
)

// ErrHeldBack: the cache does not have what etcd holds, because an object there
// cannot be read.
var ErrHeldBack = errors.New("held back")

// readiness says whether the cache can be read. It is replaced as a whole.
type readiness struct {
	known chan struct{} // closed when the cache is ready, or it is known why it is not
	held  error         // why it is held back (of kinds ErrHeldBack and storage.ErrUnreadable), or ErrEnded
}

// Ready returns nil once the cache has read its resource, ErrNotReady before that,
// ErrHeldBack if an object prevents it, and ErrEnded when its Run has ended.
func (c *Cache) Ready() error {
	r := c.readiness.Load()
	select {
	case <-r.known:
		return c.readiness.Load().held
	default:
		return ErrNotReady
	}
}

// maxFirstRead is how long a reader waits for a cache that has yet to be read. Large
// resources take seconds, and a custom one is read when the first client asks for it,
// which had better wait than be told to come back.
const maxFirstRead = 30 * time.Second

// WaitReady waits until the cache has read its resource. If it is held back, WaitReady
// returns at once: an administrator has to repair that first. So it does if the cache has
// ended.
func (c *Cache) WaitReady(ctx context.Context) error {
	if err := c.Ready(); !errors.Is(err, ErrNotReady) {
		return err
	}
	select {
	case <-c.readiness.Load().known:
		return c.Ready()
	case <-c.options.Clock.After(maxFirstRead):
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

// holdBack freezes the cache and denies reads until its resource can be read as a whole:
// no list may lack an object because that is corrupt, or was sealed with a key that is
// lost. The reflector's mu is held; other caches go on.
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

// retryLoad triggers another attempt to read a cache that is held back, without waiting
// for it.
func (c *Cache) retryLoad() {
	select {
	case c.retry <- struct{}{}:
	default:
	}
}

// isHeldBy reports whether events include a change of the object because of which the cache
// is held back. The reflector's mu is held.
func (c *Cache) isHeldBy(events []storage.Event) bool {
	return slices.ContainsFunc(events, func(e storage.Event) bool { return e.Object.Key == c.heldBy })
}

// HeldBack returns the prefixes of the caches that are held back, relative to the
// reflector's and sorted.
func (f *Reflector) HeldBack() []string {
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
