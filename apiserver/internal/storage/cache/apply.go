package cache

import (
	"errors"
	"fmt"

	"kctl/apiserver/internal/storage"
	"kctl/apiserver/internal/storage/raw"
)

// normalize brings what was read into the form that clients see.
func (c *Cache) normalize(objects []storage.Object) {
	if c.options.Normalize == nil {
		return
	}
	for i := range objects {
		objects[i].Value = c.options.Normalize(objects[i].Value)
	}
}

// replace takes a complete list, read at revision. It ends all watchers, since
// the individual changes before it are unknown.
func (c *Cache) replace(objects []storage.Object, revision int64) {
	entries := make([]*Entry, len(objects))
	for i, object := range objects {
		entries[i] = c.newEntry(object)
	}
	c.expected.clear()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unchanged = nil
	c.entries.Clear(false)
	for _, e := range entries {
		c.entries.ReplaceOrInsert(e)
	}
	c.recent.reset(revision)
	c.lastChangeRevision = revision
	c.initializations++
	read := int64(len(objects))
	c.stored.add(Listed{Lists: 1, Fetched: read, Evaluated: read, Returned: read})
	c.endWatchers()
	// A store restored from a backup may be at an older revision.
	c.appliedRevision.Store(revision)
	if errors.Is(c.Ready(), ErrHeldBack) {
		c.options.Logger.Info("resource read again, which was held back")
	}
	c.setReady(nil)
}

// apply applies events in the order in which etcd sent them, or none if one can't be
// read.
func (c *Cache) apply(events []storage.Event) error {
	changes := make([]*change, 0, len(events))
	for _, e := range events {
		ch, err := c.prepare(e)
		if err != nil {
			return err
		}
		if ch != nil {
			changes = append(changes, ch)
		}
	}
	c.mu.Lock()
	for _, ch := range changes {
		if c.applyChange(ch) {
			c.unchanged = nil
			c.tellWatchers(c.recent.next, ch)
			c.recent.push(ch)
			c.lastChangeRevision = ch.revision
		}
	}
	c.appliedRevision.Store(events[len(events)-1].Object.Revision)
	c.mu.Unlock()
	c.wake()
	return nil
}

// prepare does what needs no lock. Progress events make no change.
func (c *Cache) prepare(e storage.Event) (*change, error) {
	if e.Type == storage.Progress || e.Object.Unreadable != nil {
		return nil, e.Object.Unreadable
	}
	ch := &change{revision: e.Object.Revision, at: c.options.Clock.Now()}
	if e.Type == storage.Deleted {
		ch.kind = Deleted
		ch.entry = &Entry{Key: e.Object.Key}
		return ch, nil
	}
	ch.kind = Added
	if e.Type == storage.Modified {
		ch.kind = Modified
	}
	if err := c.complete(ch, e.Object); err != nil {
		return nil, &storage.KeyError{Op: "read", Key: e.Object.Key, Err: fmt.Errorf("%w: %w", storage.ErrUnreadable, err)}
	}
	return ch, nil
}

// complete gives ch its entry, with the object's resourceVersion in place.
func (c *Cache) complete(ch *change, o storage.Object) (err error) {
	put := raw.AppendWithResourceVersion
	hint, expected := c.expected.match(o)
	if !expected { // what this server wrote needs no check
		if err := raw.Check(o.Value); err != nil {
			return err
		}
	}
	switch {
	case expected:
		put = raw.AppendNewResourceVersion
	case c.options.Normalize != nil:
		if o.Value, err = raw.SetResourceVersion(o.Value, o.Revision); err != nil {
			return err
		}
		o.Value = c.options.Normalize(o.Value)
	}
	if ch.frame, o.Value, err = frameAt(ch.kind, o.Value, o.Revision, put); err != nil {
		return err
	}
	ch.entry = c.newEntry(o)
	ch.entry.index.Store(hint.index)
	if hint.object != nil {
		ch.object.Store(&hint.object)
	}
	return nil
}

// applyChange updates the entries and completes ch with the previous entry. It
// reports whether anything changed.
func (c *Cache) applyChange(ch *change) bool {
	if ch.kind == Deleted {
		return c.applyDelete(ch)
	}
	kind := Added
	if old, ok := c.entries.ReplaceOrInsert(ch.entry); ok {
		ch.old, kind = old, Modified
	}
	// What etcd calls created may already be known here, and vice versa: watchers
	// need what is consistent with what they were told before.
	if kind != ch.kind {
		ch.kind = kind
		ch.frame, ch.entry.Value = frame(kind, ch.entry.Value)
	}
	return true
}

func (c *Cache) applyDelete(ch *change) bool {
	old, ok := c.entries.Delete(ch.entry)
	if !ok {
		return false
	}
	ch.old = old
	c.completeDeleted(ch)
	return true
}

// completeDeleted gives ch, whose old entry is known, the last state with the
// revision of the deletion.
func (c *Cache) completeDeleted(ch *change) {
	framed, inside := frame(Deleted, withRevision(ch.old.Value, ch.revision))
	ch.frame = framed
	ch.entry = c.newEntry(storage.Object{Key: ch.old.Key, Value: inside, Revision: ch.revision})
	ch.entry.index.Store(ch.old.index.Load())
}
