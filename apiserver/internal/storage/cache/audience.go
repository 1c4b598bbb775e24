package cache

import (
	"iter"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
)

// audience is the set of a cache's watchers. Those that ask for one value of a
// field, as a kubelet does for its node's pods, are indexed by it, so that a
// change costs nothing for the thousands it does not concern. It is not safe
// for concurrent use.
type audience struct {
	others  map[*Watcher]struct{}
	byField map[string]map[string]map[*Watcher]struct{} // field, value
}

func newAudience() audience {
	return audience{others: map[*Watcher]struct{}{}, byField: map[string]map[string]map[*Watcher]struct{}{}}
}

// narrowest returns the field of s, with its required value, that the fewest
// objects are likely to share; ok is false if s names none.
func narrowest(s fields.Selector) (field, value string, ok bool) {
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

// home is the set that w is in, or belongs in.
func (a *audience) home(w *Watcher) map[*Watcher]struct{} {
	field, value, ok := narrowest(w.options.Fields)
	if !ok {
		return a.others
	}
	values := a.byField[field]
	if values == nil {
		values = map[string]map[*Watcher]struct{}{}
		a.byField[field] = values
	}
	if values[value] == nil {
		values[value] = map[*Watcher]struct{}{}
	}
	return values[value]
}

func (a *audience) add(w *Watcher) { a.home(w)[w] = struct{}{} }

func (a *audience) remove(w *Watcher) {
	home := a.home(w)
	delete(home, w)
	if field, value, ok := narrowest(w.options.Fields); ok && len(home) == 0 {
		delete(a.byField[field], value)
		if len(a.byField[field]) == 0 {
			delete(a.byField, field)
		}
	}
}

// all yields every watcher once. They may be removed meanwhile.
func (a *audience) all() iter.Seq[*Watcher] {
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
func each(watchers map[*Watcher]struct{}, yield func(*Watcher) bool) bool {
	for w := range watchers {
		if !yield(w) {
			return false
		}
	}
	return true
}

// concerned yields, once each, the watchers that may see something of a change.
func (c *Cache) concerned(ch *change) iter.Seq[*Watcher] {
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
