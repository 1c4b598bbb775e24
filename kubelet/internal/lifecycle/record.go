package lifecycle

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/runtimestate"
)

// record is what is remembered of one pod from one step of its life to the next.
type record struct {
	// leaves are the ends that the pod waits for before it begins.
	leaves []Leave
	// waiting says why containers do not run, by their names, as the last syncs found it.
	// It is replaced, never changed.
	waiting map[string]runtimestate.Waiting
	// active is since when a pod with a deadline has been active, on a monotonic clock.
	// Its startTime is from the machine's clock, which may be set meanwhile: forward by a
	// day, and it would end the pod; back, and it would keep it a day too long.
	active time.Time
}

// records has the record of each pod, from when something is to be remembered until
// the pod has ended.
type records struct {
	mu   sync.Mutex
	pods map[types.UID]record
}

func (r *records) of(uid types.UID) record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pods[uid]
}

func (r *records) change(uid types.UID, change func(*record)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pods == nil {
		r.pods = map[types.UID]record{}
	}
	one := r.pods[uid]
	change(&one)
	r.pods[uid] = one
}

func (r *records) forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pods, uid)
}

// noteWaiting adds the result of a sync: a container that it started no longer waits.
func (r *records) noteWaiting(uid types.UID, found map[string]runtimestate.Waiting) {
	r.change(uid, func(one *record) {
		next := map[string]runtimestate.Waiting{}
		maps.Copy(next, one.waiting)
		maps.Copy(next, found)
		maps.DeleteFunc(next, func(_ string, why runtimestate.Waiting) bool { return why.Reason == "" })
		one.waiting = next
	})
}

// activeSince is when the pod became active: its startTime when that is first seen,
// unless it is in the future, and from then on the same.
func (r *records) activeSince(uid types.UID, start, now time.Time) (since time.Time) {
	r.change(uid, func(one *record) {
		if one.active.IsZero() {
			one.active = now.Add(-max(0, now.Sub(start)))
		}
		since = one.active
	})
	return since
}
