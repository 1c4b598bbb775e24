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
	// Lists counts the answers from memory, Fetched the entries that were looked at for them, and
	// Returned those that were in them.
	Lists, Fetched, Returned int64
}

// counters are the Stats that only grow, and are written without a lock.
type counters struct{ lists, fetched, returned atomic.Int64 }

func (c *counters) listed(fetched, returned int) {
	c.lists.Add(1)
	c.fetched.Add(int64(fetched))
	c.returned.Add(int64(returned))
}

// Stats returns the present ones.
func (c *Cache) Stats() Stats {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s := Stats{
		Objects: c.entries.Len(), Changes: c.recent.next, Capacity: len(c.recent.changes), Revision: c.appliedRevision.Load(),
		Initializations: c.initializations, Lists: c.counters.lists.Load(), Fetched: c.counters.fetched.Load(), Returned: c.counters.returned.Load(),
	}
	if c.Ready() != nil {
		s.Objects = -1
	}
	return s
}
