package cache

import (
	"context"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

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
	// Gather is how long after a delivery what happens is left to come together
	// before it is delivered, for whom a delivery costs more than most events.
	Gather time.Duration
}

// Watcher delivers the changes that one watch selects. It holds none of them
// itself: it reads on in the cache's ring at its own speed, and is ended when
// the ring has gone past it. One from before the ring first reads what etcd
// still has (replay.go).
type Watcher struct {
	cache   *Cache
	options WatchOptions
	ctx     context.Context
	wake    chan struct{} // there is something to see, or the watch has ended

	// initial is the state at revision, which is to be delivered first.
	initial  []*Entry
	revision int64

	// past are the changes before what the ring holds, up to the revision replayed;
	// nil where there are none, or no more.
	past     iter.Seq2[storage.Change, error]
	replayed int64

	// next is the number of the first change in the ring that the watcher has
	// yet to see, none, or inPast. It is written under the cache's mu, or, by the watcher
	// itself, while that is held for reading: watchers do not wait for each other.
	next  int64
	ended bool // written under the cache's mu
}

const (
	none   = -1
	inPast = -2 // what is to come is read from the ring when the past is over
)

// Watch begins a watch; it ends with ctx. The error is of kind
// storage.ErrCompacted where the changes since are no longer known.
func (c *Cache) Watch(ctx context.Context, o WatchOptions) (*Watcher, error) {
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

// join begins to watch; false where the ring holds only changes after oldest.
func (w *Watcher) join() (oldest int64, ok bool) {
	c := w.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	w.revision = c.Revision()
	if w.options.Initial {
		w.initial = c.collect(Page{Selection: w.options.Selection})
		c.watchers.add(w)
		return 0, true
	}
	if !w.enter(w.options.Since) {
		return c.recent.after, false
	}
	c.watchers.add(w)
	return 0, true
}

// enter has the watcher read in the ring after a revision; false where the ring no
// longer holds all of that. The cache's mu is held.
func (w *Watcher) enter(after int64) bool {
	number, ok := w.cache.recent.since(after)
	if !ok {
		return false
	}
	w.next = none
	if number < w.cache.recent.next {
		w.next = number
		w.rouse()
	}
	return true
}

// tellWatchers notes for those who see something of the change, whose number is
// given, that they have to wake up.
func (c *Cache) tellWatchers(number int64, ch *change) {
	for w := range c.concerned(ch) {
		if w.next != none {
			continue
		}
		if _, sees := w.sees(ch); sees {
			w.next = number
			c.woken = append(c.woken, w)
		}
	}
}

// wake wakes those who were told. The cache's mu is free by then: each of them
// comes for it first.
func (c *Cache) wake() {
	for _, w := range c.woken {
		w.rouse()
	}
	clear(c.woken)
	c.woken = c.woken[:0]
}

func (w *Watcher) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// sees is as what the watcher sees the change; false where it sees nothing.
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

// Events waits for the events and delivers them, in the goroutine that ranges
// over them; they can be ranged over once. The second value tells that another
// event is ready. They end with the context, or because the watcher was too slow
// or the cache lost its place. Who watches then watches again from the last
// revision seen.
func (w *Watcher) Events() iter.Seq2[WatchEvent, bool] {
	return func(yield func(WatchEvent, bool) bool) {
		defer w.leave()
		d := &delivery{watcher: w, yield: yield}
		if !w.sendInitial(d) || !w.sendPast(d) {
			return
		}
		if w.options.Begun != nil {
			w.options.Begun()
		}
		w.run(d)
	}
}

// Channel delivers events to whoever waits for something else too. It is closed
// at the end of the watch; who wants no more of them ends ctx.
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
	bookmark := w.cache.options.Clock.NewTimer(w.untilBookmark())
	defer bookmark.Stop()
	var delivered time.Time
	for {
		select {
		case <-w.wake:
			w.gather(delivered)
			if !w.sendPending(d) {
				return
			}
			delivered = w.cache.options.Clock.Now()
		case <-bookmark.C():
			if !w.sendBookmark(d) {
				return
			}
			bookmark.Reset(w.untilBookmark())
		}
	}
}

// gather waits where there was a delivery just now. Meanwhile nothing wakes the
// watcher either.
func (w *Watcher) gather(delivered time.Time) {
	wait := w.options.Gather - w.cache.options.Clock.Since(delivered)
	if wait <= 0 {
		return
	}
	timer := w.cache.options.Clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-w.ctx.Done():
	}
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
	w.rouse()
}

// delivery holds each event back until it is known whether another follows at
// once.
type delivery struct {
	watcher *Watcher
	yield   func(WatchEvent, bool) bool
	held    WatchEvent
	holds   bool
}

// put delivers what was held and holds e; false ends the watch.
func (d *delivery) put(e WatchEvent) bool {
	if d.holds && !d.deliver(true) {
		return false
	}
	d.held, d.holds = e, true
	return true
}

// end delivers what was held, for nothing follows it yet; false ends the watch.
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
	initial := w.initial
	w.initial = nil
	for _, e := range initial {
		if w.cache.matches(w.options.Selection, e) && !d.put(WatchEvent{Type: Added, Object: Encoded{JSON: e.Value, Revision: e.Revision}}) {
			return false
		}
	}
	if w.options.InitialEnd && !d.put(w.bookmark(w.revision, true)) {
		return false
	}
	return d.end()
}

// batch bounds how many changes a watcher takes from the ring under one lock.
const batch = 256

// sendPending delivers what is in the ring for the watcher; false ends it.
func (w *Watcher) sendPending(d *delivery) bool {
	var changes [batch]*change
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

// take copies the next changes out of the ring, and tells whether some are left
// there. It is not ok where the ring has dropped some of them, or the cache has
// ended the watch.
func (w *Watcher) take(changes *[batch]*change) (n int, left, ok bool) {
	c := w.cache
	c.mu.RLock()
	defer c.mu.RUnlock()
	if w.ended || w.next < 0 {
		return 0, false, !w.ended
	}
	if w.next < c.recent.first {
		return 0, false, false
	}
	for n < batch && w.next < c.recent.next {
		changes[n] = c.recent.at(w.next)
		w.next++
		n++
	}
	if w.next == c.recent.next {
		w.next = none
	}
	return n, w.next != none, true
}

// Bookmarks come about every bookmarkEvery, and once bookmarkBefore the end of
// the watch's time, so that whoever watches on has a young revision to do so
// from.
const (
	bookmarkEvery  = time.Minute
	bookmarkBefore = 2 * time.Second
)

func (w *Watcher) untilBookmark() time.Duration {
	wait := bookmarkEvery + rand.N(bookmarkEvery/4) - bookmarkEvery/8
	if end, ok := w.ctx.Deadline(); ok {
		if left := end.Sub(w.cache.options.Clock.Now()) - bookmarkBefore; left > 0 && left < wait {
			return left
		}
	}
	return wait
}

// sendBookmark tells how far the watch is, where it is asked to and nothing is
// on its way.
func (w *Watcher) sendBookmark(d *delivery) bool {
	if !w.options.Bookmarks {
		return true
	}
	c := w.cache
	// Without changes of this resource, only etcd knows how far it is; where it
	// does not answer, an older revision is as true.
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
	value := `{"kind":"` + kind + `","apiVersion":"` + apiVersion + `","metadata":{"resourceVersion":"` + strconv.FormatInt(revision, 10) + `","creationTimestamp":null`
	if initialEnd {
		value += `,"annotations":{"k8s.io/initial-events-end":"true"}`
	}
	return WatchEvent{Type: Bookmark, Object: Encoded{JSON: []byte(value + "}}"), Revision: revision}}
}
