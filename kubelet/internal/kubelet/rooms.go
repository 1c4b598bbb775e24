package kubelet

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

// leave is the end of a pod that makes room: done is closed when it has ended, and
// nobody waits for it longer than until.
type leave struct {
	pod   *core.Pod
	done  <-chan struct{}
	until time.Time
}

// rooms knows which pods have to end before critical ones may begin.
type rooms struct {
	mu   sync.Mutex
	ends map[types.UID][]leave
}

func (r *rooms) note(critical types.UID, ends []leave) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ends == nil {
		r.ends = map[types.UID][]leave{}
	}
	r.ends[critical] = ends
}

func (r *rooms) of(critical types.UID) []leave {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ends[critical]
}

func (r *rooms) forget(critical types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ends, critical)
}
