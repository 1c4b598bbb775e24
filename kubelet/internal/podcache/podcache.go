// Package podcache keeps the newest known state of each pod in the runtime.
//
// The lifecycle event generator writes what its relists find, and pod workers
// write the results of their own calls; pod workers, probes and the server read
// it. It never asks the runtime itself.
package podcache

import (
	"context"
	"iter"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/runtimestate"
)

// Cache is safe for concurrent use. The statuses in it are shared and must not
// be changed.
type Cache struct {
	mu      sync.Mutex
	entries map[types.UID]entry
	// complete is the time of the last relist that went through: a pod without
	// an entry was not in the runtime then.
	complete time.Time
	// changed is closed, and replaced, when anything becomes newer.
	changed chan struct{}
}

type entry struct {
	status *runtimestate.PodStatus
	err    error
	at     time.Time
}

// New returns an empty Cache.
func New() *Cache {
	return &Cache{entries: map[types.UID]entry{}, changed: make(chan struct{})}
}

// Set records the pod's status as it was at the given time, or the error met when
// asking for it. Anything older than the present entry is dropped; Set reports
// whether it was accepted. That the runtime has nothing of a pod is also kept,
// until the next Complete, so that an older answer does not bring the pod back.
func (c *Cache) Set(uid types.UID, status *runtimestate.PodStatus, err error, at time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.entries[uid]; ok && old.at.After(at) {
		return false
	}
	c.entries[uid] = entry{status: status, err: err, at: at}
	c.wake()
	return true
}

// Complete notes that at the given time the runtime had these pods and no others,
// and that each of them has its entry. Earlier entries of other pods are forgotten,
// for example one by a worker that asked before the pod was gone and wrote later.
func (c *Cache) Complete(at time.Time, pods iter.Seq[types.UID]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gone := map[types.UID]bool{}
	for uid, e := range c.entries {
		gone[uid] = !e.at.After(at)
	}
	for uid := range pods {
		delete(gone, uid)
	}
	maps.DeleteFunc(c.entries, func(uid types.UID, _ entry) bool { return gone[uid] })
	if at.After(c.complete) {
		c.complete = at
		c.wake()
	}
}

func (c *Cache) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Get is what is known about the pod now. A pod that the runtime does not have
// has an empty status.
func (c *Cache) Get(uid types.UID) (*runtimestate.PodStatus, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.get(uid)
	return e.status, e.err
}

// All is what is known about all pods that the runtime has, in no order.
func (c *Cache) All() []*runtimestate.PodStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*runtimestate.PodStatus, 0, len(c.entries))
	for _, e := range c.entries {
		if e.status != nil && len(e.status.Sandboxes)+len(e.status.Containers) > 0 {
			all = append(all, e.status)
		}
	}
	return all
}

func (c *Cache) get(uid types.UID) entry {
	if e, ok := c.entries[uid]; ok {
		return e
	}
	return entry{status: &runtimestate.PodStatus{UID: uid, At: c.complete}, at: c.complete}
}

// GetNewerThan waits until what is known about the pod is not older than the
// given time.
func (c *Cache) GetNewerThan(ctx context.Context, uid types.UID, than time.Time) (*runtimestate.PodStatus, error) {
	for {
		c.mu.Lock()
		e, changed := c.get(uid), c.changed
		if c.complete.After(e.at) {
			// The last relist saw no change of the pod.
			e.at = c.complete
		}
		known := !c.complete.IsZero() || e.err != nil || !e.at.IsZero()
		c.mu.Unlock()
		if known && !e.at.Before(than) {
			return e.status, e.err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}
