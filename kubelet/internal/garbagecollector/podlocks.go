package garbagecollector

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// podLocks lock pods: if two removed the same at the same time, one of them would fail.
type podLocks struct {
	mu     sync.Mutex
	locked map[types.UID]chan struct{} // closed when the pod is unlocked
}

func newPodLocks() *podLocks { return &podLocks{locked: map[types.UID]chan struct{}{}} }

// lock fails if ctx ends before the pod is unlocked.
func (l *podLocks) lock(ctx context.Context, uid types.UID) error {
	for {
		unlocked := l.try(uid)
		if unlocked == nil {
			return nil
		}
		select {
		case <-unlocked:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// try locks the pod, or returns what to wait for.
func (l *podLocks) try(uid types.UID) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if unlocked, is := l.locked[uid]; is {
		return unlocked
	}
	l.locked[uid] = make(chan struct{})
	return nil
}

func (l *podLocks) unlock(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.locked[uid])
	delete(l.locked, uid)
}
