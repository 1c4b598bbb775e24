// Package storage declares what the registry needs of the store that keeps
// objects. Package etcd implements it; cache stands in front of it for reads.
//
// Values here are whole encoded JSON objects. On the way in they carry no
// resourceVersion; on the way out it is set: etcd's revision is the
// resourceVersion.
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
	Revision int64  // the revision at which it was written
	// Stale: the value should be written again even if it does not change, because
	// it would be stored in another form today. Reads of the store set it, watches
	// don't.
	Stale bool
	// Unreadable is why the value, which is empty then, can't be read: the key it was
	// sealed with is lost, or it is corrupt. A read of a single object returns it as its
	// error.
	Unreadable error
}

// maxUnreadable is how many objects that can't be read are named; upstream's.
const maxUnreadable = 100

// UnreadableError says which objects of a list can't be read.
type UnreadableError struct {
	Objects []error // why, for each; at least one, and maxUnreadable at most
	More    bool    // whether others were not looked at
}

func (e *UnreadableError) Error() string {
	if others := len(e.Objects) - 1; others > 0 {
		return fmt.Sprintf("%v (and %d more)", e.Objects[0], others)
	}
	return e.Objects[0].Error()
}

// Unwrap returns the reasons.
func (e *UnreadableError) Unwrap() []error { return e.Objects }

// Unreadable returns an UnreadableError if some of the objects can't be read.
func Unreadable(objects []Object) error {
	var found []error
	for _, o := range objects {
		switch {
		case o.Unreadable == nil:
		case len(found) == maxUnreadable:
			return &UnreadableError{Objects: found, More: true}
		default:
			found = append(found, o.Unreadable)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return &UnreadableError{Objects: found}
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

// Event is one change. Its Object's value is as it was written, without
// resourceVersion: the receiver copies it anyway, and sets it meanwhile. For
// Deleted, Object has the key and the revision of the deletion but no value:
// the watcher knows the last one, while the store may have dropped it already.
type Event struct {
	Type   EventType
	Object Object
}

// Change is an Event with the object before it, as that was written; Before has
// no key if there was none.
type Change struct {
	Event
	Before Object
}

// Errors by kind; test with errors.Is.
var (
	ErrNotFound = errors.New("not found")
	ErrExists   = errors.New("already exists")
	// ErrConflict: the key's revision is not the expected one.
	ErrConflict = errors.New("revision conflict")
	// ErrCompacted: the requested revision is no longer kept (410 Expired).
	ErrCompacted = errors.New("revision compacted")
	// ErrFuture: the requested revision does not exist yet (504 with "Too large resource
	// version").
	ErrFuture = errors.New("revision in the future")
	// ErrUnavailable: the store did not answer. Whether a write happened is
	// unknown.
	ErrUnavailable = errors.New("store does not answer")
	// ErrUnreadable: the stored value can't be decrypted, or is not an object.
	ErrUnreadable = errors.New("stored value cannot be read")
	// ErrTooLarge: the value is larger than the store accepts.
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
// returned Object has it.
type Writer interface {
	// Create writes key if it does not exist. A ttl of zero keeps it forever.
	Create(ctx context.Context, key string, value []byte, ttl time.Duration) (Object, error)
	// Update writes key if its revision is still the given one; otherwise it
	// returns ErrNotFound, or ErrConflict together with the present object.
	Update(ctx context.Context, key string, revision int64, value []byte, ttl time.Duration) (Object, error)
	// Delete removes key if its revision is still the given one; otherwise it
	// fails like Update. The returned Object has no value; its Revision is that of
	// the deletion.
	Delete(ctx context.Context, key string, revision int64) (Object, error)
}

// Reader reads the store itself, bypassing any cache.
type Reader interface {
	// Get returns the object as stored now, or ErrNotFound, or ErrUnreadable together with
	// the revision.
	Get(ctx context.Context, key string) (Object, error)
	// List returns the objects under prefix at one revision, in key order, at most
	// limit (0 for all) after the key `after` ("" for the first); revision 0 means
	// now. It also returns the revision it read at and how many keys are left.
	// Objects that can't be read are included, with the reason.
	List(ctx context.Context, prefix, after string, limit int64, revision int64) (objects []Object, at int64, remaining int64, err error)
	// Watch delivers the changes under prefix after revision, in order, until ctx
	// ends or an error occurs; then the channel is closed and Err returns why.
	// Objects that can't be read are delivered with the reason.
	Watch(ctx context.Context, prefix string, revision int64) (Watch, error)
	// Changes yields what happened under prefix after one revision, up to and including
	// another that the store has reached, once and without delay; it ends with ctx, or with
	// an error: ErrCompacted if the store has dropped what comes next, ErrUnreadable if
	// that can't be read, and ErrUnavailable if the store did not answer or the wait for a
	// turn was too long.
	Changes(ctx context.Context, prefix string, after, until int64) (iter.Seq2[Change, error], error)
	// Revision is the store's current revision: at least that of every write
	// that was answered before the call.
	Revision(ctx context.Context) (int64, error)
}

// Watch is a running watch. It ends with the context it was created with.
type Watch interface {
	Events() <-chan []Event
	Err() error // valid once Events is closed; ErrCompacted if that is the reason
	// RequestProgress asks for a Progress event soon. It may be lost.
	RequestProgress(ctx context.Context) error
}

// Interface is the whole store.
type Interface interface {
	Reader
	Writer
}
