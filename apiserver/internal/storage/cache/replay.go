package cache

import (
	"errors"
	"fmt"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/raw"
)

// maxReplayedRevisions is how many past revisions a watcher may have read from etcd: beyond
// that, listing again costs less.
const maxReplayedRevisions = 10_000

var errTooFar = errors.New("more has happened since than is read again")

// tooOld tells a watcher that the changes since a revision are no longer known,
// in the words that upstream's clients know.
type tooOld struct{ since, oldest int64 }

func (e tooOld) Error() string {
	return fmt.Sprintf("too old resource version: %d (%d)", e.since, e.oldest)
}

func (tooOld) Unwrap() error { return storage.ErrCompacted }

// replay lets a watcher whose revision is older than the ring read the changes
// that etcd still has, so that a client that was away or too slow, or meets a
// server that has just started, need not list again.
func (w *Watcher) replay() error {
	w.cache.mu.Lock()
	w.next = inPast
	w.cache.watchers.add(w)
	w.cache.mu.Unlock()
	if err := w.readPast(w.options.Since); err != nil {
		w.leave()
		return err
	}
	return nil
}

// readPast opens the changes after a revision, up to the cache's own.
func (w *Watcher) readPast(after int64) (err error) {
	c := w.cache
	w.replayed = c.Revision()
	if w.replayed-after > maxReplayedRevisions {
		return errTooFar
	}
	w.past, err = c.options.Storage.Changes(w.ctx, c.options.Prefix, after, w.replayed)
	return err
}

// sendPast delivers the past changes, and then lets the watcher go on with the
// ring; false ends it.
func (w *Watcher) sendPast(d *delivery) bool {
	for w.past != nil {
		for change, err := range w.past {
			if err != nil {
				return w.sendExpired(d, err)
			}
			if !w.sendChange(d, change) {
				return false
			}
		}
		w.past = nil
		if !d.end() {
			return false
		}
		// The ring may have moved on meanwhile.
		joined, ended := w.rejoin()
		if ended {
			return false
		}
		if joined {
			break
		}
		if err := w.readPast(w.replayed); err != nil {
			return w.sendExpired(d, err)
		}
	}
	return true
}

// sendExpired tells the client that the past can't be read completely, so that it
// does not try the same again and again; it returns false, like every end. If etcd
// did not answer, or the watcher took too long, the client may resume from what it
// has seen.
func (w *Watcher) sendExpired(d *delivery, why error) bool {
	if w.ctx.Err() != nil || errors.Is(why, storage.ErrUnavailable) {
		return false
	}
	w.cache.options.Logger.Debug("the past is not read to its end", zap.String("prefix", w.cache.options.Prefix), zap.Error(why))
	w.cache.mu.RLock()
	expired := tooOld{since: w.options.Since, oldest: w.cache.recent.after}
	w.cache.mu.RUnlock()
	if d.put(ErrorEvent(apierrors.NewResourceExpired(expired.Error()))) {
		d.end()
	}
	return false
}

func (w *Watcher) sendChange(d *delivery, past storage.Change) bool {
	ch, err := w.cache.past(past)
	if err != nil {
		return true // as if it did not exist: the reflector logged it at the time
	}
	kind, sees := w.sees(ch)
	return !sees || d.put(ch.event(kind))
}

// rejoin lets the watcher go on with the ring where the past ends.
func (w *Watcher) rejoin() (joined, ended bool) {
	w.cache.mu.Lock()
	defer w.cache.mu.Unlock()
	if w.ended {
		return false, true
	}
	w.options.Since = w.replayed
	return w.startAfter(w.replayed), false
}

// past turns a past change into the change that watchers saw then. If the object
// was unreadable before, it counts as new.
func (c *Cache) past(p storage.Change) (ch *change, err error) {
	ch = &change{kind: Added, revision: p.Object.Revision}
	if p.Before.Key != "" {
		if ch.old, err = c.pastEntry(p.Before); err == nil {
			ch.kind = Modified
		} else if p.Type == storage.Deleted {
			return nil, err
		}
	}
	if p.Type == storage.Deleted {
		ch.kind = Deleted
		c.completeDeleted(ch)
		return ch, nil
	}
	if ch.entry, err = c.pastEntry(p.Object); err != nil {
		return nil, err
	}
	ch.frame, ch.entry.Value = frame(ch.kind, ch.entry.Value)
	return ch, nil
}

func (c *Cache) pastEntry(o storage.Object) (*Entry, error) {
	value, err := raw.SetResourceVersion(o.Value, o.Revision)
	if err != nil {
		return nil, err
	}
	if c.options.Normalize != nil {
		value = c.options.Normalize(value)
	}
	o.Value = value
	return c.newEntry(o), nil
}
