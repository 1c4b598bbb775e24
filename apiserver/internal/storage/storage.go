// Package storage says what the registry asks of the place where objects are
// kept. etcd is the one that keeps them; cache stands before it for reads.
//
// Values here are whole encoded JSON objects. On the way in they carry no
// resourceVersion; on the way out it is in place, because etcd's revision is
// the resourceVersion.
package storage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Object is one stored object.
type Object struct {
	Key      string // "/registry/pods/default/web", upstream's keys
	Value    []byte // encoded JSON with metadata.resourceVersion set; never changed
	Revision int64  // the revision that wrote it
	// Stale: the value should be written again even where it does not change,
	// because it would be stored in another form today. Readers of the store say
	// so, watches don't.
	Stale bool
	// Unreadable is why the value can't be read, which is empty then: the key that it was
	// sealed with is lost, or it is broken. Who reads one object is given it as an error.
	Unreadable error
}

// Unreadable is the first of objects that can't be read, as an error; nil where all can.
func Unreadable(objects []Object) error {
	for _, o := range objects {
		if o.Unreadable != nil {
			return o.Unreadable
		}
	}
	return nil
}

// EventType says what happened to a key.
type EventType int

const (
	Added EventType = iota
	Modified
	Deleted
	// Progress carries no object: everything up to Revision has been delivered.
	Progress
)

// Event is one change. Its Object's value is as it was written: who takes the
// event copies it anyway, and sets the resourceVersion meanwhile. For Deleted,
// Object has a key and the revision of the deletion and no value: who watches
// knows the last one, while the store may have dropped it already.
type Event struct {
	Type   EventType
	Object Object
}

// Change is an Event with what was there before, as that was written; its Before
// has no key where nothing was.
type Change struct {
	Event
	Before Object
}

// Errors by kind; test with errors.Is.
var (
	ErrNotFound = errors.New("not found")
	ErrExists   = errors.New("already exists")
	// ErrConflict: the guard's revision is not the key's.
	ErrConflict = errors.New("revision conflict")
	// ErrCompacted: the revision asked for is no longer kept (410 Expired).
	ErrCompacted = errors.New("revision compacted")
	// ErrFuture: the revision asked for is not there yet (504 with "Too large resource version").
	ErrFuture = errors.New("revision in the future")
	// ErrUnavailable: the store gave no answer. Whether a write happened is not
	// known.
	ErrUnavailable = errors.New("store does not answer")
	// ErrUnreadable: what is stored cannot be opened, or is no object.
	ErrUnreadable = errors.New("stored value cannot be read")
	// ErrTooLarge: the value is larger than the store takes.
	ErrTooLarge = errors.New("value too large")
)

// KeyError names the key an error is about.
type KeyError struct {
	Op, Key string
	Err     error
}

// Error implements error.
func (e *KeyError) Error() string { return fmt.Sprintf("%s %s: %v", e.Op, e.Key, e.Err) }

// Unwrap returns one of the errors above, or etcd's own.
func (e *KeyError) Unwrap() error { return e.Err }

// Writer changes the store. Every method is one transaction; errors are one of
// the kinds above, in a KeyError. Values are stored without resourceVersion; the
// Object returned has it.
type Writer interface {
	// Create writes key if it does not exist. ttl of zero keeps it for good.
	Create(ctx context.Context, key string, value []byte, ttl time.Duration) (Object, error)
	// Update writes key if its revision is still the given one; else
	// ErrNotFound, or ErrConflict together with the object as it is now.
	Update(ctx context.Context, key string, revision int64, value []byte, ttl time.Duration) (Object, error)
	// Delete removes key if its revision is still the given one, else as
	// Update. The answer has no value; its Revision is that of the deletion.
	Delete(ctx context.Context, key string, revision int64) (Object, error)
}

// Reader reads the store itself, past any cache.
type Reader interface {
	// Get returns the object as it is stored now, or ErrNotFound, or ErrUnreadable together
	// with the revision.
	Get(ctx context.Context, key string) (Object, error)
	// List returns the objects under prefix at one revision, in key order, at
	// most limit (0 for all) after the key `after` ("" for the first); revision
	// 0 means now. It also returns the revision read at and how many keys are
	// left. What can't be read is among them, and says why.
	List(ctx context.Context, prefix, after string, limit int64, revision int64) (objects []Object, at int64, remaining int64, err error)
	// Watch delivers the changes under prefix after revision, in order, until
	// ctx ends or an error; then the channel is closed and Err tells why. What can't
	// be read says so.
	Watch(ctx context.Context, prefix string, revision int64) (Watch, error)
	// Changes delivers what happened under prefix after one revision, up to and
	// with another that the store has reached, to whoever ranges over it, once and
	// without delay; it ends with ctx, or with an error. That is ErrCompacted where
	// the store has dropped what comes next, ErrUnreadable where that can't be read, and
	// ErrUnavailable where the store gave no answer or others took their turn for too long.
	Changes(ctx context.Context, prefix string, after, until int64) (iter.Seq2[Change, error], error)
	// Revision is the store's current revision: at least that of every write
	// that was answered before the call.
	Revision(ctx context.Context) (int64, error)
}

// Watch is a running watch. It ends with the context that it was made with.
type Watch interface {
	Events() <-chan []Event
	Err() error // after Events is closed; ErrCompacted where that is why
	// RequestProgress asks for a Progress event soon. It may be lost.
	RequestProgress(ctx context.Context) error
}

// Interface is the whole store.
type Interface interface {
	Reader
	Writer
}
