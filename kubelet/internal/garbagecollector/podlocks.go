package garbagecollector

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// podLocks lock pods: if two removed the same at the same time, one of them would fail.
type podLocks struct {
	mu     sync.Mutex
	freed  *sync.Cond // of mu
	locked map[types.UID]bool
}

func newPodLocks() *podLocks {
	l := &podLocks{locked: map[types.UID]bool{}}
	l.freed = sync.NewCond(&l.mu)
	return l
}

func (l *podLocks) lock(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.locked[uid] {
		l.freed.Wait()
	}
	l.locked[uid] = true
}

func (l *podLocks) unlock(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.locked, uid)
	l.freed.Broadcast()
}
