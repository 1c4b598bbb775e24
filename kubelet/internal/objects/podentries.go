package objects

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// podEntries keeps what was obtained for single pods: one entry for each K, as long as
// the pod is registered.
type podEntries[K comparable, E any] struct {
	mu      sync.Mutex
	entries map[types.UID]map[K]*podEntry[E]
}

// podEntry is an entry, and whether somebody has it.
type podEntry[E any] struct {
	value E
	taken chan struct{} // holds one token while it is taken
}

// take returns the pod's entry under the key, a new one if there is none, and what gives it back. There is one taker
// at a time, so that the pod's other callers wait for the same answer, each until its own ctx ends.
func (o *podEntries[K, E]) take(ctx context.Context, pod types.UID, key K) (entry *E, give func(), err error) {
	e := o.entry(pod, key)
	select {
	case e.taken <- struct{}{}:
		return &e.value, func() { <-e.taken }, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

func (o *podEntries[K, E]) entry(pod types.UID, key K) *podEntry[E] {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.entries == nil {
		o.entries = map[types.UID]map[K]*podEntry[E]{}
	}
	of := o.entries[pod]
	if of == nil {
		of = map[K]*podEntry[E]{}
		o.entries[pod] = of
	}
	e := of[key]
	if e == nil {
		e = &podEntry[E]{taken: make(chan struct{}, 1)}
		of[key] = e
	}
	return e
}

func (o *podEntries[K, E]) forget(pod types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.entries, pod)
}
