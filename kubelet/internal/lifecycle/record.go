package lifecycle

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// record is what is remembered of a pod between two steps.
type record struct {
	// victims are the pods whose end the pod waits for before it starts.
	victims []Victim
	// waiting is why containers are not running, by name, as the last syncs found.
	// It is replaced, never changed.
	waiting map[string]runtimestate.Waiting
	// active is when a pod with a deadline became active, on a monotonic clock.
	// Its startTime is from the wall clock: if that is set forward by a day, the
	// pod would end at once; if it is set back, a day too late.
	active time.Time
	// before is the pod as it was before a resize, until its control group has its final limits.
	before *core.Pod
}

// records has the record of each pod, from the first thing to remember until
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

// noteWaiting merges the result of a sync: a container that it started is no
// longer waiting.
func (r *records) noteWaiting(uid types.UID, found map[string]runtimestate.Waiting) {
	r.change(uid, func(one *record) {
		next := map[string]runtimestate.Waiting{}
		maps.Copy(next, one.waiting)
		maps.Copy(next, found)
		maps.DeleteFunc(next, func(_ string, why runtimestate.Waiting) bool { return why.Reason == "" })
		one.waiting = next
	})
}

// activeSince returns when the pod became active: the first time its startTime,
// or now if that is in the future, and later always the same.
func (r *records) activeSince(uid types.UID, start, now time.Time) (since time.Time) {
	r.change(uid, func(one *record) {
		if one.active.IsZero() {
			one.active = now.Add(-max(0, now.Sub(start)))
		}
		since = one.active
	})
	return since
}
