package cache

import (
	"kctl/apiserver/internal/storage"
)

// normalize brings what was read into the form in which it is to be seen.
func (c *Cache) normalize(objects []storage.Object) {
	if c.options.Normal == nil {
		return
	}
	for i := range objects {
		objects[i].Value = c.options.Normal(objects[i].Value)
	}
}

// replace takes a complete list, read at revision. It ends every watcher: what
// happened before is not known change by change.
func (c *Cache) replace(objects []storage.Object, revision int64) {
	entries := make([]*Entry, len(objects))
	for i, object := range objects {
		entries[i] = c.newEntry(object)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.Clear(false)
	for _, e := range entries {
		c.entries.ReplaceOrInsert(e)
	}
	c.recent.reset(revision)
	c.changed = revision
	c.endWatchers()
	// A store that was put back from a backup may be at an older revision.
	c.applied.Store(revision)
	if !c.isReady {
		c.isReady = true
		close(c.ready)
	}
}

// apply takes events in the order in which etcd sent them.
func (c *Cache) apply(events []storage.Event) {
	changes := make([]*change, 0, len(events))
	for _, e := range events {
		if ch := c.prepare(e); ch != nil {
			changes = append(changes, ch)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ch := range changes {
		if c.applyChange(ch) {
			c.tellWatchers(c.recent.next, ch)
			c.recent.push(ch)
			c.changed = ch.revision
		}
	}
	c.applied.Store(events[len(events)-1].Object.Revision)
}

// prepare does what needs no lock. Progress makes no change.
func (c *Cache) prepare(e storage.Event) *change {
	if e.Type == storage.Progress {
		return nil
	}
	ch := &change{revision: e.Object.Revision, at: c.options.Clock.Now()}
	if e.Type == storage.Deleted {
		ch.kind = Deleted
		ch.entry = &Entry{Key: e.Object.Key}
		return ch
	}
	ch.kind = Added
	if e.Type == storage.Modified {
		ch.kind = Modified
	}
	if c.options.Normal != nil && !c.expected.has(e.Object.Key) {
		e.Object.Value = c.options.Normal(e.Object.Value)
	}
	ch.frame, e.Object.Value = frame(ch.kind, e.Object.Value)
	ch.entry = c.newEntry(e.Object)
	if object := c.expected.recognise(ch.entry); object != nil {
		ch.object.Store(&object)
	}
	return ch
}

// applyChange changes the entries and completes ch with what was there before.
// It reports whether anything changed.
func (c *Cache) applyChange(ch *change) bool {
	if ch.kind == Deleted {
		return c.applyDelete(ch)
	}
	kind := Added
	if old, ok := c.entries.ReplaceOrInsert(ch.entry); ok {
		ch.old, kind = old, Modified
	}
	// What etcd calls created may be known here already, and the reverse: the
	// watchers' truth is what they were told before.
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
	framed, inside := frame(Deleted, withRevision(old.Value, ch.revision))
	ch.old, ch.frame = old, framed
	ch.entry = c.newEntry(storage.Object{Key: old.Key, Value: inside, Revision: ch.revision})
	ch.entry.index.Store(old.index.Load())
	return true
}
