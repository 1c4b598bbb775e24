package cache

import (
	"sync/atomic"
	"time"

	"kctl/apiserver/internal/status"
	"kctl/apiserver/internal/storage/raw"
	"kctl/proto/core"
)

// The types of watch events, as they go over the wire.
const (
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
	Bookmark = "BOOKMARK"
	Error    = "ERROR"
)

// Encoded is an object as it is stored and sent: JSON, resourceVersion and
// kind in place. The bytes are shared and must not be changed.
type Encoded struct {
	JSON     []byte
	Revision int64
	// Object is what JSON was encoded from, without the resourceVersion, if that
	// is at hand; otherwise nil. It saves decoding the JSON, is shared, and must
	// not be changed.
	Object core.Object
}

// WatchEvent is one change as a watcher sees it: an object that begins to match
// the selectors is ADDED, one that stops matching is DELETED.
type WatchEvent struct {
	Type   string
	Object Encoded
	// Frame is the event as it goes over the wire in JSON, encoded once and shared
	// by all watchers that see the same event; nil if it has yet to be made.
	Frame []byte
}

// ErrorEvent is the event that tells a watcher why its watch ends.
func ErrorEvent(err error) WatchEvent {
	return WatchEvent{Type: Error, Object: Encoded{JSON: status.JSON(err)}}
}

// change is one change of one object; what a watcher with selectors sees of it
// may differ.
type change struct {
	kind     string // Added, Modified or Deleted
	revision int64
	at       time.Time
	frame    []byte
	// entry is the object after the change; for a deleted one, its last state with
	// the revision of the deletion.
	entry *Entry
	old   *Entry // the one before the change; nil for Added
	// object is what the entry's value was encoded from, while the change is among
	// the most recent.
	object atomic.Pointer[core.Object]

	// What watchers see whose selectors a modified object begins or ceases to match.
	asAdded, asDeleted atomic.Pointer[WatchEvent]
}

// memorySize is how many bytes the change keeps alive.
func (ch *change) memorySize() int {
	if ch.old == nil {
		return len(ch.frame)
	}
	return len(ch.frame) + len(ch.old.Value)
}

var (
	frameStart = map[string]string{
		Added:    `{"type":"ADDED","object":`,
		Modified: `{"type":"MODIFIED","object":`,
		Deleted:  `{"type":"DELETED","object":`,
	}
	frameEnd = "}\n"
)

// frame wraps value in the JSON of an event, and returns that and the value's
// part of it: one allocation serves both.
func frame(kind string, value []byte) (framed, inside []byte) {
	framed, inside, _ = frameAt(kind, value, 0, func(dst, value []byte, _ int64) ([]byte, error) { return append(dst, value...), nil })
	return framed, inside
}

// frameAt is frame for a value whose resourceVersion put sets while it copies it.
func frameAt(kind string, value []byte, revision int64,
	put func(dst, value []byte, revision int64) ([]byte, error)) (framed, inside []byte, err error) {
	start := frameStart[kind]
	framed = append(make([]byte, 0, len(start)+len(value)+raw.VersionLength+len(frameEnd)), start...)
	if framed, err = put(framed, value, revision); err != nil {
		return nil, nil, err
	}
	end := len(framed)
	framed = append(framed, frameEnd...)
	return framed, framed[len(start):end:end], nil
}

// seenBy returns the type of event that a watcher with the given selection
// sees; ok is false if it sees none.
func (c *Cache) seenBy(s Selection, ch *change) (kind string, ok bool) {
	now := ch.kind != Deleted && c.matches(s, ch.entry)
	before := ch.old != nil && c.matches(s, ch.old)
	switch {
	case now && before:
		return Modified, true
	case now:
		return Added, true
	case before:
		return Deleted, true
	}
	return "", false
}

// event returns the change as an event of the given type.
func (ch *change) event(kind string) WatchEvent {
	if kind == ch.kind {
		event := WatchEvent{Type: kind, Object: Encoded{JSON: ch.entry.Value, Revision: ch.revision}, Frame: ch.frame}
		if object := ch.object.Load(); object != nil {
			event.Object.Object = *object
		}
		return event
	}
	held, value := &ch.asAdded, ch.entry.Value
	if kind == Deleted {
		held = &ch.asDeleted
	}
	if made := held.Load(); made != nil {
		return *made
	}
	if kind == Deleted {
		// It left the watcher's selection: as it was before, with the present revision.
		value = withRevision(ch.old.Value, ch.revision)
	}
	framed, inside := frame(kind, value)
	made := &WatchEvent{Type: kind, Object: Encoded{JSON: inside, Revision: ch.revision}, Frame: framed}
	held.Store(made)
	return *made
}

// withRevision sets the resourceVersion of a value that the cache holds, which
// is therefore well-formed.
func withRevision(value []byte, revision int64) []byte {
	out, err := raw.SetResourceVersion(value, revision)
	if err != nil {
		return value
	}
	return out
}
