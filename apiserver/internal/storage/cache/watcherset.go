package cache

import (
	"iter"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"
)

// watcherSet is the set of a cache's watchers. Those that ask for one value of a
// field, as a kubelet does for its node's pods, are indexed by it, so that a
// change costs nothing for the thousands it does not concern. It is not safe
// for concurrent use.
type watcherSet struct {
	others  sets.Set[*Watcher]
	byField map[string]map[string]sets.Set[*Watcher] // field, value
}

func newWatcherSet() watcherSet {
	return watcherSet{others: sets.Set[*Watcher]{}, byField: map[string]map[string]sets.Set[*Watcher]{}}
}

// mostSelectiveField returns the field of s, with its required value, that the fewest
// objects are likely to share; ok is false if s names none.
func mostSelectiveField(s fields.Selector) (field, value string, ok bool) {
	if s == nil {
		return "", "", false
	}
	for _, r := range s.Requirements() {
		if r.Operator != selection.Equals && r.Operator != selection.DoubleEquals || r.Field == "metadata.namespace" {
			continue
		}
		if !ok || r.Field == "metadata.name" {
			field, value, ok = r.Field, r.Value, true
		}
	}
	return field, value, ok
}

// setOf is the set that w is in, or belongs in.
func (a *watcherSet) setOf(w *Watcher) sets.Set[*Watcher] {
	field, value, ok := mostSelectiveField(w.options.Fields)
	if !ok {
		return a.others
	}
	values := a.byField[field]
	if values == nil {
		values = map[string]sets.Set[*Watcher]{}
		a.byField[field] = values
	}
	if values[value] == nil {
		values[value] = sets.Set[*Watcher]{}
	}
	return values[value]
}

func (a *watcherSet) add(w *Watcher) { a.setOf(w).Insert(w) }

func (a *watcherSet) remove(w *Watcher) {
	home := a.setOf(w)
	home.Delete(w)
	if field, value, ok := mostSelectiveField(w.options.Fields); ok && len(home) == 0 {
		delete(a.byField[field], value)
		if len(a.byField[field]) == 0 {
			delete(a.byField, field)
		}
	}
}

// all yields every watcher once. They may be removed meanwhile.
func (a *watcherSet) all() iter.Seq[*Watcher] {
	return func(yield func(*Watcher) bool) {
		if !each(a.others, yield) {
			return
		}
		for _, values := range a.byField {
			for _, watchers := range values {
				if !each(watchers, yield) {
					return
				}
			}
		}
	}
}

// each yields the watchers of a set, and reports whether yield wanted all of them.
func each(watchers sets.Set[*Watcher], yield func(*Watcher) bool) bool {
	for w := range watchers {
		if !yield(w) {
			return false
		}
	}
	return true
}

// interestedWatchers yields, once each, the watchers that may see something of a change.
func (c *Cache) interestedWatchers(ch *change) iter.Seq[*Watcher] {
	return func(yield func(*Watcher) bool) {
		if !each(c.watchers.others, yield) {
			return
		}
		for field, values := range c.watchers.byField {
			now := (selectable{c, ch.entry}).Get(field)
			if !each(values[now], yield) {
				return
			}
			if ch.old == nil {
				continue
			}
			if before := (selectable{c, ch.old}).Get(field); before != now && !each(values[before], yield) {
				return
			}
		}
	}
}
