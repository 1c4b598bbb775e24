package cache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"kctl/apiserver/internal/storage"
)

// WatchOptions ask for a watch.
type WatchOptions struct {
	Selection
	// Since is the revision after which changes are wanted; Initial asks for
	// the present state first, as ADDED, and for the changes after it.
	Since   int64
	Initial bool
	// Bookmarks asks for BOOKMARK events about every minute; InitialEnd for one
	// that says where the initial state ends.
	Bookmarks  bool
	InitialEnd bool
	// Begun is called when the initial state has been sent; nil for nobody.
	Begun func()
}

// Watcher delivers the changes that one watch selects. It holds none of them
// itself: it reads on in the cache's ring at its own speed, and is ended when
// the ring has gone past it.
type Watcher struct {
	cache   *Cache
	options WatchOptions
	out     chan WatchEvent
	wake    chan struct{}
	done    chan struct{} // closed when the cache ends the watch

	// next is the number of the first change in the ring that the watcher has
	// yet to see, or none. Guarded by the cache's mu.
	next  int64
	ended bool
}

const none = -1

// Events are closed at the end of the watch: of its context, or because the
// watcher was too slow or the cache lost its place. Who watches then watches
// again from the last revision seen.
func (w *Watcher) Events() <-chan WatchEvent { return w.out }

// Watch begins a watch; it ends with ctx. The error is of kind
// storage.ErrCompacted where the changes since are no longer known.
func (c *Cache) Watch(ctx context.Context, o WatchOptions) (*Watcher, error) {
	w := &Watcher{
		cache:   c,
		options: o,
		out:     make(chan WatchEvent, 16),
		wake:    make(chan struct{}, 1),
		done:    make(chan struct{}),
		next:    none,
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var initial []*Entry
	revision := c.Revision()
	if o.Initial {
		initial = c.collect(Page{Selection: o.Selection})
	} else {
		number, ok := c.recent.since(o.Since)
		if !ok {
			return nil, fmt.Errorf("too old resource version: %d (%d): %w", o.Since, c.recent.after, storage.ErrCompacted)
		}
		if number < c.recent.next {
			w.next = number
			w.wake <- struct{}{}
		}
	}
	c.watchers.add(w)
	go w.run(ctx, initial, revision)
	return w, nil
}

// tellWatchers wakes those who see something of the change, whose number is
// given.
func (c *Cache) tellWatchers(number int64, ch *change) {
	for w := range c.concerned(ch) {
		if w.next != none || !w.wants(ch) {
			continue
		}
		w.next = number
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

func (w *Watcher) wants(ch *change) bool {
	if ch.revision <= w.options.Since || !strings.HasPrefix(ch.entry.Key, w.options.Prefix) {
		return false
	}
	_, ok := w.cache.seenBy(w.options.Selection, ch)
	return ok
}

// endWatchers ends all of them.
func (c *Cache) endWatchers() {
	for w := range c.watchers.all() {
		c.watchers.remove(w)
		w.ended = true
		close(w.done)
	}
}

// run delivers until the watch ends. It is the only one to send on w.out.
func (w *Watcher) run(ctx context.Context, initial []*Entry, revision int64) {
	defer close(w.out)
	defer w.leave()
	if !w.sendInitial(ctx, initial, revision) {
		return
	}
	if w.options.Begun != nil {
		w.options.Begun()
	}
	bookmark := w.cache.options.Clock.NewTimer(w.untilBookmark(ctx))
	defer bookmark.Stop()
	for {
		select {
		case <-w.wake:
			if !w.sendPending(ctx) {
				return
			}
		case <-bookmark.C():
			if !w.sendBookmark(ctx) {
				return
			}
			bookmark.Reset(w.untilBookmark(ctx))
		case <-w.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (w *Watcher) leave() {
	w.cache.mu.Lock()
	defer w.cache.mu.Unlock()
	w.cache.watchers.remove(w)
}

func (w *Watcher) send(ctx context.Context, e WatchEvent) bool {
	select {
	case w.out <- e:
		return true
	case <-w.done:
	case <-ctx.Done():
	}
	return false
}

func (w *Watcher) sendInitial(ctx context.Context, initial []*Entry, revision int64) bool {
	for _, e := range initial {
		if !w.cache.matches(w.options.Selection, e) {
			continue
		}
		if !w.send(ctx, WatchEvent{Type: Added, Object: Encoded{JSON: e.Value, Revision: e.Revision}}) {
			return false
		}
	}
	if w.options.InitialEnd {
		return w.send(ctx, w.bookmark(revision, true))
	}
	return true
}

// batch bounds how many changes a watcher takes from the ring under one lock.
const batch = 256

// sendPending delivers what is in the ring for the watcher; false ends it.
func (w *Watcher) sendPending(ctx context.Context) bool {
	var changes [batch]*change
	for {
		n, behind := w.take(&changes)
		if behind {
			return false
		}
		if n == 0 {
			return true
		}
		for _, ch := range changes[:n] {
			if !w.wants(ch) {
				continue
			}
			event, _ := w.cache.seenBy(w.options.Selection, ch)
			if !w.send(ctx, *event) {
				return false
			}
		}
	}
}

// take copies the next changes out of the ring. behind is true where the ring
// has dropped some of them.
func (w *Watcher) take(changes *[batch]*change) (n int, behind bool) {
	c := w.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.ended || w.next == none {
		return 0, w.ended
	}
	if w.next < c.recent.first {
		return 0, true
	}
	for n < batch && w.next < c.recent.next {
		changes[n] = c.recent.at(w.next)
		w.next++
		n++
	}
	if w.next == c.recent.next {
		w.next = none
	}
	return n, false
}

// Bookmarks come about every bookmarkEvery, and once bookmarkBefore the end of
// the watch's time, so that whoever watches on has a young revision to do so
// from.
const (
	bookmarkEvery  = time.Minute
	bookmarkBefore = 2 * time.Second
)

func (w *Watcher) untilBookmark(ctx context.Context) time.Duration {
	wait := bookmarkEvery + rand.N(bookmarkEvery/4) - bookmarkEvery/8
	if end, ok := ctx.Deadline(); ok {
		if left := end.Sub(w.cache.options.Clock.Now()) - bookmarkBefore; left > 0 && left < wait {
			return left
		}
	}
	return wait
}

// sendBookmark tells how far the watch is, where it is asked to and nothing is
// on its way.
func (w *Watcher) sendBookmark(ctx context.Context) bool {
	if !w.options.Bookmarks {
		return true
	}
	c := w.cache
	// Without changes of this resource, only etcd knows how far it is; where it
	// does not answer, an older revision is as true.
	if err := c.WaitCurrent(ctx); err != nil && ctx.Err() != nil {
		return false
	}
	if !w.sendPending(ctx) {
		return false
	}
	c.mu.RLock()
	revision, pending := c.Revision(), w.next != none
	c.mu.RUnlock()
	if pending || revision < w.options.Since {
		return true
	}
	return w.send(ctx, w.bookmark(revision, false))
}

func (w *Watcher) bookmark(revision int64, initialEnd bool) WatchEvent {
	apiVersion, kind := w.cache.options.Kind.ToAPIVersionAndKind()
	value := `{"kind":"` + kind + `","apiVersion":"` + apiVersion + `","metadata":{"resourceVersion":"` + strconv.FormatInt(revision, 10) + `","creationTimestamp":null`
	if initialEnd {
		value += `,"annotations":{"k8s.io/initial-events-end":"true"}`
	}
	return WatchEvent{Type: Bookmark, Object: Encoded{JSON: []byte(value + "}}"), Revision: revision}}
}
