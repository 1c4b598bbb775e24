package podworker

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// queue holds, per pod, when to look at it again. It has at most one time per
// pod, so it is bounded by the pods of the node.
type queue struct {
	clock clock.PassiveClock

	mu  sync.Mutex
	due map[types.UID]time.Time
}

func newQueue(clock clock.PassiveClock) *queue {
	return &queue{clock: clock, due: map[types.UID]time.Time{}}
}

// bring sets the pod's time if it has none that is sooner.
func (q *queue) bring(uid types.UID, after time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.clock.Now().Add(after)
	if due, ok := q.due[uid]; !ok || at.Before(due) {
		q.due[uid] = at
	}
}

// drop takes the pod's time away, and tells whether it had one.
func (q *queue) drop(uid types.UID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, had := q.due[uid]
	delete(q.due, uid)
	return had
}

// take removes and returns the pods whose time has come.
func (q *queue) take() []types.UID {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.clock.Now()
	var uids []types.UID
	for uid, at := range q.due {
		if !at.After(now) {
			uids = append(uids, uid)
			delete(q.due, uid)
		}
	}
	return uids
}
