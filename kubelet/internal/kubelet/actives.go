package kubelet

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// actives knows since when pods with a deadline have been active, on a monotonic
// clock. Their startTime is from the machine's clock, which may be set meanwhile:
// forward by a day, and it would end them; back, and it would keep them a day too
// long.
type actives struct {
	mu   sync.Mutex
	seen map[types.UID]time.Time
}

// of is when the pod became active: its startTime when that is first seen,
// unless it is in the future, and from then on the same.
func (a *actives) of(uid types.UID, start, now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen == nil {
		a.seen = map[types.UID]time.Time{}
	}
	at, known := a.seen[uid]
	if !known {
		at = now.Add(-max(0, now.Sub(start)))
		a.seen[uid] = at
	}
	return at
}

func (a *actives) forget(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.seen, uid)
}
