package podruntime

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// removals has each pod removed by one at a time. The pod's worker and the garbage
// collector may both want to; containerd refuses the second removal of a container while
// the first is under way, and the worker would try again only after a while.
type removals struct {
	mu   sync.Mutex
	busy map[types.UID]chan struct{} // closed when the removal is over
}

// begin waits for another's removal of the pod. The caller's own lasts until done.
func (r *removals) begin(ctx context.Context, pod types.UID) (done func(), err error) {
	for {
		other, done := r.take(pod)
		if other == nil {
			return done, nil
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take takes the pod, or returns what tells when the one who has it is done.
func (r *removals) take(pod types.UID) (other <-chan struct{}, done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other, ok := r.busy[pod]; ok {
		return other, nil
	}
	over := make(chan struct{})
	r.busy[pod] = over
	return nil, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.busy, pod)
		close(over)
	}
}
