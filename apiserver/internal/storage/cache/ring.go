package cache

import (
	"sort"
	"time"
)

// The ring holds at least ringMin changes. It grows, up to the other bounds,
// while they are younger than ringFresh, which is how long a watcher may be
// away or behind; one that was away for longer gets what etcd remembers
// (replay.go). Changes older than ringStale are dropped when new ones come, so
// that a burst is not held for ever. Without changes it takes no memory.
//
// Decoded objects weigh more than their bytes: only the most recent ringDecoded
// changes keep theirs, for followers that keep up.
const (
	ringDecoded  = 64
	ringFirst    = 8
	ringMin      = 128
	ringMax      = 64 * 1024
	ringMaxBytes = 16 << 20 // of the changed objects, after and before
	ringFresh    = 75 * time.Second
	ringStale    = 5 * time.Minute
)

// ring remembers the last changes in order, numbered consecutively. It is not
// safe for concurrent use.
type ring struct {
	changes []*change // by number modulo length
	first   int64     // number of the oldest
	next    int64     // number of the next one
	after   int64     // every change after this revision is held
	bytes   int
}

// reset forgets everything: it holds the changes after revision from now on.
// Numbers are not reused, so that no watcher mistakes new changes for old ones.
func (r *ring) reset(revision int64) {
	*r = ring{first: r.next, next: r.next, after: revision}
}

func (r *ring) len() int { return int(r.next - r.first) }

func (r *ring) at(number int64) *change { return r.changes[number%int64(len(r.changes))] }

func (r *ring) push(c *change) {
	for r.len() > ringMin && (r.bytes > ringMaxBytes || c.at.Sub(r.at(r.first).at) > ringStale) {
		r.drop()
	}
	if r.len() == len(r.changes) {
		young := len(r.changes) < ringMin || c.at.Sub(r.at(r.first).at) < ringFresh
		if young && len(r.changes) < ringMax {
			r.grow()
		} else {
			r.drop()
		}
	}
	r.changes[r.next%int64(len(r.changes))] = c
	if old := r.next - ringDecoded; old >= r.first {
		r.at(old).object.Store(nil)
	}
	r.next++
	r.bytes += c.memorySize()
}

func (r *ring) drop() {
	oldest := r.at(r.first)
	r.after = oldest.revision
	r.bytes -= oldest.memorySize()
	r.changes[r.first%int64(len(r.changes))] = nil
	r.first++
}

func (r *ring) grow() {
	larger := make([]*change, max(ringFirst, 2*len(r.changes)))
	for number := r.first; number < r.next; number++ {
		larger[number%int64(len(larger))] = r.at(number)
	}
	r.changes = larger
}

// since returns the number of the first change after revision; ok is false if
// some of them are no longer held.
func (r *ring) since(revision int64) (number int64, ok bool) {
	if revision < r.after {
		return 0, false
	}
	older := sort.Search(r.len(), func(i int) bool { return r.at(r.first+int64(i)).revision > revision })
	return r.first + int64(older), true
}
