package cache

import "sync/atomic"

// Stats are what a cache holds and has done so far, for metrics.
type Stats struct {
	// Objects counts the entries; -1 while they are unknown.
	Objects int
	// Changes counts those that were applied, and Capacity is how many are remembered at most
	// without more memory.
	Changes  int64
	Capacity int
	// Revision is that of the last change, or of the list.
	Revision int64
	// Initializations counts how often everything was read.
	Initializations int64
	// Memory is about lists that were answered from the cache, Stored about those that were read from
	// etcd, among them what the cache reads for itself.
	Memory, Stored Listed
}

// Listed counts Lists, the entries that were Fetched for them, those of them that were
// compared with selectors (Evaluated), and those that the lists had (Returned).
type Listed struct{ Lists, Fetched, Evaluated, Returned int64 }

// counter is a Listed that is written without a lock.
type counter struct{ lists, fetched, evaluated, returned atomic.Int64 }

func (c *counter) add(l Listed) {
	c.lists.Add(l.Lists)
	c.fetched.Add(l.Fetched)
	c.evaluated.Add(l.Evaluated)
	c.returned.Add(l.Returned)
}

func (c *counter) load() Listed {
	return Listed{Lists: c.lists.Load(), Fetched: c.fetched.Load(), Evaluated: c.evaluated.Load(), Returned: c.returned.Load()}
}

// Stats returns the present ones.
func (c *Cache) Stats() Stats {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s := Stats{
		Objects: c.entries.Len(), Changes: c.recent.next, Capacity: len(c.recent.changes), Revision: c.appliedRevision.Load(),
		Initializations: c.initializations, Memory: c.memory.load(), Stored: c.stored.load(),
	}
	if c.Ready() != nil {
		s.Objects = -1
	}
	return s
}
