package podruntime

import (
	"sync"
	"time"

	"kctl/kubelet/internal/runtimestate"
)

// ends knows when containers ended, for their back-off, on a monotonic clock.
// The runtime's record is from the machine's clock, which may be set meanwhile:
// set back by a day, it would delay a container for a day.
type ends struct {
	forget time.Duration // after which nobody waits for a back-off any more

	mu    sync.Mutex
	seen  map[containerKey]end
	swept time.Time
}

type end struct {
	id runtimestate.ContainerID
	at time.Time
}

func newEnds(maxBackOff time.Duration) *ends {
	return &ends{forget: 2 * maxBackOff, seen: map[containerKey]end{}}
}

// of is when an exited container ended: the runtime's time when that is first
// seen, unless it is in the future, and from then on the same.
func (e *ends) of(key containerKey, last *runtimestate.ContainerStatus, now time.Time) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	if known, ok := e.seen[key]; ok && known.id == last.ID {
		return known.at
	}
	e.sweep(now)
	at := now.Add(-max(0, now.Sub(last.FinishedAt)))
	e.seen[key] = end{id: last.ID, at: at}
	return at
}

// sweep keeps the map as small as the set of containers that ended lately.
func (e *ends) sweep(now time.Time) {
	if now.Sub(e.swept) < e.forget {
		return
	}
	e.swept = now
	for key, one := range e.seen {
		if now.Sub(one.at) > e.forget {
			delete(e.seen, key)
		}
	}
}
