package managedfields

import (
	"slices"
	"sync"
)

// maxJoined is how many converters are kept for pairs of a custom kind's versions: all pairs of
// four versions. There are 1,560 pairs of 40 versions, each with two large schemas in one.
const maxJoined = 16

// joined has the converters for pairs of a custom kind's versions that were used last.
type joined struct {
	mu   sync.Mutex
	last []joint // the one used last first
}

// joint is the converter of one version's objects that have another version's fields, too.
type joint struct {
	own, more *Tracker
	converter func() *converter
}

// converter returns the converter for objects of own that have the fields of more, too.
func (j *joined) converter(own, more *Tracker) *converter {
	return j.find(own, more).converter() // outside the lock: it may take a while to make
}

func (j *joined) find(own, more *Tracker) joint {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := slices.IndexFunc(j.last, func(have joint) bool { return have.own == own && have.more == more })
	found := joint{own, more, sync.OnceValue(func() *converter { return join(own, more) })}
	if i >= 0 {
		found = j.last[i]
		j.last = slices.Delete(j.last, i, i+1)
	}
	j.last = slices.Insert(j.last, 0, found)
	if len(j.last) > maxJoined {
		j.last = slices.Delete(j.last, maxJoined, len(j.last)) // and forgets them
	}
	return found
}

func join(own, more *Tracker) *converter {
	schema := own.options.Schema()
	if both := schema.With(more.options.Schema()); both != schema {
		return newConverter(own, both)
	}
	return own.converter()
}
