package cache

import (
	"context"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/third_party/forked/golang/btree"

	"kctl/apiserver/internal/storage"
	"kctl/proto/backoff"
)

// WatchOptions describe a watch.
type WatchOptions struct {
	Selection
	// Since is the revision after which changes are delivered; SendInitialEvents asks for
	// the present state first, as ADDED events, and the changes after it.
	Since             int64
	SendInitialEvents bool
	// Bookmarks asks for BOOKMARK events about every minute; InitialEventsEnd for one
	// that marks the end of the initial state.
	Bookmarks        bool
	InitialEventsEnd bool
	// InitialEventsSent, if not nil, is called when the initial state has been sent.
	InitialEventsSent func()
	// BatchDelay is how long changes are collected after a delivery before the next
	// one, for receivers to which a delivery costs more than an event.
	BatchDelay time.Duration
}

// Watcher delivers the changes that one watch selects. It holds none of them
// itself: it reads the cache's ring at its own pace, and is ended when the ring
// has overtaken it. One that starts before the ring's oldest change first reads
// what etcd still has (replay.go).
type Watcher struct {
	cache   *Cache
	options WatchOptions
	ctx     context.Context
	wake    chan struct{} // there is something to see, or the watch has ended

	// initial is the state at revision, which is to be delivered first; nil if it is not.
	initial  *btree.BTree[*Entry]
	revision int64

	// past are the changes before those in the ring, up to the revision replayed;
	// nil if there are none, or none left.
	past     iter.Seq2[storage.Change, error]
	replayed int64

	// next is the number of the first change in the ring that the watcher has yet to see,
	// none, or inPast. It is written under the cache's mu, or by the watcher itself while
	// that is read-locked: watchers do not wait for each other.
	next  int64
	ended bool // written under the cache's mu
}

const (
	none   = -1
	inPast = -2 // what follows is read from the ring once the past has been delivered
)

// Watch begins a watch; it ends with ctx. The error is storage.ErrCompacted if
// the changes since are no longer known, or if what is asked for was never written, because
// etcd went back to a backup.
func (c *Cache) Watch(ctx context.Context, o WatchOptions) (*Watcher, error) {
	if current := c.Revision(); c.reflector.isLost(o.Since, current) {
		return nil, tooOld{since: o.Since, oldest: current}
	}
	w := &Watcher{
		cache:   c,
		options: o,
		ctx:     ctx,
		wake:    make(chan struct{}, 1),
		next:    none,
	}
	if oldest, ok := w.join(); !ok {
		if err := w.replay(); err != nil {
			c.options.Logger.Debug("the past is not read", zap.String("prefix", c.options.Prefix), zap.Int64("since", o.Since), zap.Error(err))
			return nil, tooOld{since: o.Since, oldest: oldest}
		}
	}
	if err := c.Ready(); err != nil { // nothing would come
		w.leave()
		return nil, err
	}
	context.AfterFunc(ctx, w.leave)
	return w, nil
}

// join begins to watch; it returns false if the ring only holds changes after oldest.
func (w *Watcher) join() (oldest int64, ok bool) {
	c := w.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	w.revision = c.Revision()
	if w.options.SendInitialEvents {
		w.initial = c.snapshot()
		c.watchers.add(w)
		return 0, true
	}
	if !w.startAfter(w.options.Since) {
		return c.recent.after, false
	}
	c.watchers.add(w)
	return 0, true
}

// startAfter places the watcher in the ring after a revision; it returns false if the
// ring no longer holds all changes since. The cache's mu is held.
func (w *Watcher) startAfter(after int64) bool {
	number, ok := w.cache.recent.since(after)
	if !ok {
		return false
	}
	w.next = none
	if number < w.cache.recent.next {
		w.next = number
		w.signal()
	}
	return true
}

// tellWatchers marks the watchers that see something of the change, whose
// number is given, to be woken.
func (c *Cache) tellWatchers(number int64, ch *change) {
	for w := range c.interestedWatchers(ch) {
		if w.next != none {
			continue
		}
		if _, sees := w.sees(ch); sees {
			w.next = number
			c.toWake = append(c.toWake, w)
		}
	}
}

// wake wakes the marked watchers. The cache's mu is free by then: it is the
// first thing each of them takes.
func (c *Cache) wake() {
	for _, w := range c.toWake {
		w.signal()
	}
	clear(c.toWake)
	c.toWake = c.toWake[:0]
}

func (w *Watcher) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// sees returns the type of event that the watcher sees; false if it sees none.
func (w *Watcher) sees(ch *change) (kind string, ok bool) {
	if ch.revision <= w.options.Since || !strings.HasPrefix(ch.entry.Key, w.options.Prefix) {
		return "", false
	}
	return w.cache.seenBy(w.options.Selection, ch)
}

// endWatchers ends all of them.
func (c *Cache) endWatchers() {
	for w := range c.watchers.all() {
		w.end()
	}
}

// Events yields the events as they come, in the goroutine that ranges over it,
// once. The second value reports that another event is ready. It ends with the
// context, or because the watcher was too slow or the cache lost its place. The
// client then watches again from the last revision it saw.
func (w *Watcher) Events() iter.Seq2[WatchEvent, bool] {
	return func(yield func(WatchEvent, bool) bool) {
		defer w.leave()
		d := &delivery{watcher: w, yield: yield}
		if !w.sendInitial(d) || !w.sendPast(d) {
			return
		}
		if w.options.InitialEventsSent != nil {
			w.options.InitialEventsSent()
		}
		w.run(d)
	}
}

// Channel delivers events to a receiver that also waits for other things. It is
// closed at the end of the watch; to stop earlier, end ctx.
func Channel(ctx context.Context, events iter.Seq2[WatchEvent, bool]) <-chan WatchEvent {
	out := make(chan WatchEvent)
	go func() {
		defer close(out)
		for event := range events {
			select {
			case out <- event:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// run delivers changes until the watch ends.
func (w *Watcher) run(d *delivery) {
	bookmark := w.cache.options.Clock.NewTimer(w.timeToBookmark())
	defer bookmark.Stop()
	var delivered time.Time
	for {
		select {
		case <-w.wake:
			w.delayBatch(delivered)
			if !w.sendPending(d) {
				return
			}
			delivered = w.cache.options.Clock.Now()
		case <-bookmark.C():
			if !w.sendBookmark(d) {
				return
			}
			bookmark.Reset(w.timeToBookmark())
		}
	}
}

// delayBatch waits if there was a delivery just now. Meanwhile nothing wakes the
// watcher either.
func (w *Watcher) delayBatch(delivered time.Time) {
	clock := w.cache.options.Clock
	_ = backoff.Sleep(w.ctx, clock, w.options.BatchDelay-clock.Since(delivered))
}

func (w *Watcher) leave() {
	w.cache.mu.Lock()
	defer w.cache.mu.Unlock()
	w.end()
}

// end is called under the cache's mu.
func (w *Watcher) end() {
	w.cache.watchers.remove(w)
	w.ended = true
	w.signal()
}

// delivery holds each event back until it is known whether another follows at
// once.
type delivery struct {
	watcher *Watcher
	yield   func(WatchEvent, bool) bool
	held    WatchEvent
	holds   bool
}

// put delivers the held event and holds e; false ends the watch.
func (d *delivery) put(e WatchEvent) bool {
	if d.holds && !d.deliver(true) {
		return false
	}
	d.held, d.holds = e, true
	return true
}

// end delivers the held event, since nothing follows it yet; false ends the watch.
func (d *delivery) end() bool {
	if !d.holds {
		return true
	}
	d.holds = false
	return d.deliver(false)
}

func (d *delivery) deliver(more bool) bool {
	return d.watcher.ctx.Err() == nil && d.yield(d.held, more)
}

func (w *Watcher) sendInitial(d *delivery) bool {
	if initial := w.initial; initial != nil {
		w.initial = nil
		for e := range w.cache.candidates(initial, Page{Selection: w.options.Selection}) {
			if w.cache.matches(w.options.Selection, e) && !d.put(WatchEvent{Type: Added, Object: Encoded{JSON: e.Value, Revision: e.Revision}}) {
				return false
			}
		}
	}
	if w.options.InitialEventsEnd && !d.put(w.bookmark(w.revision, true)) {
		return false
	}
	return d.end()
}

// maxBatch bounds how many changes a watcher takes from the ring under one lock.
const maxBatch = 256

// sendPending delivers what the ring holds for the watcher; false ends it.
func (w *Watcher) sendPending(d *delivery) bool {
	var changes [maxBatch]*change
	for {
		n, left, ok := w.take(&changes)
		if !ok {
			return false
		}
		for _, ch := range changes[:n] {
			if kind, sees := w.sees(ch); sees && !d.put(ch.event(kind)) {
				return false
			}
		}
		if !left {
			return d.end()
		}
	}
}

// take copies the next changes out of the ring, and reports whether more are
// left there. ok is false if the ring has dropped some of them, or the cache
// has ended the watch.
func (w *Watcher) take(changes *[maxBatch]*change) (n int, left, ok bool) {
	c := w.cache
	c.mu.RLock()
	defer c.mu.RUnlock()
	if w.ended || w.next < 0 {
		return 0, false, !w.ended
	}
	if w.next < c.recent.first {
		return 0, false, false
	}
	for n < maxBatch && w.next < c.recent.next {
		changes[n] = c.recent.at(w.next)
		w.next++
		n++
	}
	if w.next == c.recent.next {
		w.next = none
	}
	return n, w.next != none, true
}

// Bookmarks come about every bookmarkInterval, and once bookmarkBeforeTimeout the watch's
// time ends, so that the client has a recent revision from which to watch
// again.
const (
	bookmarkInterval      = time.Minute
	bookmarkBeforeTimeout = 2 * time.Second
)

func (w *Watcher) timeToBookmark() time.Duration {
	wait := bookmarkInterval + rand.N(bookmarkInterval/4) - bookmarkInterval/8
	if end, ok := w.ctx.Deadline(); ok {
		if left := end.Sub(w.cache.options.Clock.Now()) - bookmarkBeforeTimeout; left > 0 && left < wait {
			return left
		}
	}
	return wait
}

// sendBookmark sends the watch's revision, if bookmarks were asked for and no
// event is pending.
func (w *Watcher) sendBookmark(d *delivery) bool {
	if !w.options.Bookmarks {
		return true
	}
	c := w.cache
	// Without changes of this resource, only etcd knows the present revision; if
	// it does not answer, an older one is just as true.
	if err := c.WaitCurrent(w.ctx); err != nil && w.ctx.Err() != nil {
		return false
	}
	if !w.sendPending(d) {
		return false
	}
	c.mu.RLock()
	revision, pending := c.Revision(), w.next != none
	c.mu.RUnlock()
	if pending || revision < w.options.Since {
		return true
	}
	return d.put(w.bookmark(revision, false)) && d.end()
}

func (w *Watcher) bookmark(revision int64, initialEnd bool) WatchEvent {
	apiVersion, kind := w.cache.options.Kind.ToAPIVersionAndKind()
	value := `{"kind":"` + kind + `","apiVersion":"` + apiVersion + `","metadata":{"resourceVersion":"` + strconv.FormatInt(revision, 10) + `"`
	if initialEnd {
		value += `,"annotations":{"k8s.io/initial-events-end":"true"}`
	}
	return WatchEvent{Type: Bookmark, Object: Encoded{JSON: []byte(value + "}}"), Revision: revision}}
}
