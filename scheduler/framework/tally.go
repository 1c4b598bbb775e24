package framework

import (
	"maps"

	"kctl/proto/core"
)

// Tally counts something by place, that is by the values of node labels. A
// place whose count is zero is not in it.
type Tally map[string]map[string]int64 // label → value → count

// Add adds by to the count of a place.
func (t Tally) Add(label, value string, by int64) {
	places := t[label]
	if places == nil {
		places = map[string]int64{}
		t[label] = places
	}
	if places[value] += by; places[value] == 0 {
		delete(places, value)
		if len(places) == 0 {
			delete(t, label)
		}
	}
}

// On adds up the counts of the places that a node is at.
func (t Tally) On(node *core.Node) int64 {
	var sum int64
	for label, places := range t {
		if value, has := node.Labels[label]; has {
			sum += places[value]
		}
	}
	return sum
}

// AddFunc counts by more at a place.
type AddFunc func(label, value string, by int64)

// At counts by more where a node is by its label; without the label, nowhere.
func (add AddFunc) At(node *core.Node, label string, by int64) {
	if value, has := node.Labels[label]; has {
		add(label, value, by)
	}
}

// WhatIf is a Tally with private changes, which others don't see. The zero
// WhatIf is empty.
type WhatIf struct{ counted, changed Tally }

// NewWhatIf begins with the counts of a Tally, which it does not change.
func NewWhatIf(counted Tally) WhatIf { return WhatIf{counted: counted} }

// At is the count of a place.
func (w *WhatIf) At(label, value string) int64 {
	return w.counted[label][value] + w.changed[label][value]
}

// Add adds by to the count of a place.
func (w *WhatIf) Add(label, value string, by int64) {
	if w.changed == nil {
		w.changed = Tally{}
	}
	w.changed.Add(label, value, by)
}

// On adds up the counts of the places that a node is at.
func (w *WhatIf) On(node *core.Node) int64 { return w.counted.On(node) + w.changed.On(node) }

// Empty reports whether nothing at all is counted; no count may be below zero.
func (w *WhatIf) Empty() bool {
	if len(w.changed) == 0 {
		return len(w.counted) == 0
	}
	for _, tally := range [2]Tally{w.counted, w.changed} {
		for label, places := range tally {
			for value := range places {
				if w.At(label, value) != 0 {
					return false
				}
			}
		}
	}
	return true
}

// Clone returns a WhatIf whose changes w does not see.
func (w *WhatIf) Clone() WhatIf {
	c := WhatIf{counted: w.counted}
	for label, places := range w.changed {
		if c.changed == nil {
			c.changed = Tally{}
		}
		c.changed[label] = maps.Clone(places)
	}
	return c
}

// CountFunc tells add what a node, with the pods on it, counts for at its
// places.
type CountFunc func(node *NodeInfo, add AddFunc)

// Tally is the sum of count over all nodes. It is read-only, and valid for the
// attempt. Attempts that ask with an equal key share the sum, which is kept
// current by looking only at the nodes that changed in between: successive pods
// mostly ask the same. So key must contain everything that count depends on
// besides the node and the labels of namespaces.
func (s *CycleState) Tally(key string, count CountFunc) Tally {
	if s.Tallies != nil {
		return s.Tallies.of(key, s.Nodes, count)
	}
	sum := Tally{}
	for _, node := range s.Nodes {
		count(node, sum.Add)
	}
	return sum
}

const (
	// maxTallies is how many tallies are kept: the most recently used.
	maxTallies = 64
	// maxChanges is how many node changes are kept for tallies that were not used meanwhile.
	maxChanges = 1024
)

// Tallies are the sums that attempts have asked for. The snapshot of a cycle
// owns them, tells them of its changes, and hands them to each attempt; they are
// not safe for concurrent use.
type Tallies struct {
	kept map[string]*keptTally
	// changes are the latest; the first of them has the number first.
	changes []nodeChange
	first   int
	asked   int
}

type keptTally struct {
	sum   Tally
	next  int // the number of the first change that is not in sum
	asked int // when it was last
}

// nodeChange is a node before and after.
type nodeChange struct{ before, after *NodeInfo }

// Replace makes node, which the snapshot owns, a copy of its current state. If
// there are sums to update, the old and the new state are kept for them.
func (t *Tallies) Replace(node, now *NodeInfo) {
	if len(t.kept) == 0 {
		now.CopyTo(node)
		return
	}
	before, after := *node, now.Snapshot()
	*node = *after
	if len(t.changes) == maxChanges {
		t.first += maxChanges / 2
		t.changes = append(t.changes[:0], t.changes[maxChanges/2:]...)
	}
	t.changes = append(t.changes, nodeChange{&before, after})
}

// Reset says that the set of nodes has changed, or what counts has.
func (t *Tallies) Reset() { *t = Tallies{} }

func (t *Tallies) of(key string, nodes []*NodeInfo, count CountFunc) Tally {
	t.asked++
	kept := t.kept[key]
	if kept == nil {
		kept = &keptTally{next: -1}
		t.keep(key, kept)
	}
	kept.asked = t.asked
	if missed := t.first + len(t.changes) - kept.next; kept.next < t.first || 2*missed > len(nodes) {
		kept.sum = Tally{}
		for _, node := range nodes {
			count(node, kept.sum.Add)
		}
	} else {
		kept.follow(t.changes[kept.next-t.first:], count)
	}
	kept.next = t.first + len(t.changes)
	return kept.sum
}

// follow brings the sum up to date.
func (k *keptTally) follow(changes []nodeChange, count CountFunc) {
	remove := func(label, value string, by int64) { k.sum.Add(label, value, -by) }
	for _, change := range changes {
		count(change.before, remove)
		count(change.after, k.sum.Add)
	}
}

// keep adds a tally; if there is no room, it replaces the least recently used
// one.
func (t *Tallies) keep(key string, kept *keptTally) {
	if t.kept == nil {
		t.kept = map[string]*keptTally{}
	}
	if len(t.kept) == maxTallies {
		oldest := ""
		for key, other := range t.kept {
			if oldest == "" || other.asked < t.kept[oldest].asked {
				oldest = key
			}
		}
		delete(t.kept, oldest)
	}
	t.kept[key] = kept
}
