// Package keylock locks things by their keys: one caller at a time has a key, and who waits for
// one gives up when its context ends. It knows nothing of what the keys stand for.
package keylock

import (
	"context"
	"sync"
)

// Locks are the keys that are locked. The zero value has none. It is safe for concurrent use.
type Locks[K comparable] struct {
	mu     sync.Mutex
	locked map[K]chan struct{} // closed when the key is unlocked
}

// Lock waits until nobody has the key any more, and returns what unlocks it; or, if ctx ends
// before, its error.
func (l *Locks[K]) Lock(ctx context.Context, key K) (unlock func(), err error) {
	for {
		unlocked := l.try(key)
		if unlocked == nil {
			return func() { l.unlock(key) }, nil
		}
		select {
		case <-unlocked:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// try locks the key, or returns what to wait for.
func (l *Locks[K]) try(key K) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if unlocked, is := l.locked[key]; is {
		return unlocked
	}
	if l.locked == nil {
		l.locked = map[K]chan struct{}{}
	}
	l.locked[key] = make(chan struct{})
	return nil
}

func (l *Locks[K]) unlock(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.locked[key])
	delete(l.locked, key)
}

// Len is how many keys are locked.
func (l *Locks[K]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.locked)
}
