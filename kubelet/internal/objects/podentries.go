package objects

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// podEntries keeps what was obtained for single pods: one entry for each K, as long as
// the pod is registered.
type podEntries[K comparable, E any] struct {
	mu      sync.Mutex
	entries map[types.UID]map[K]*E
}

// entry is the pod's entry under the key, a new one if there is none.
func (o *podEntries[K, E]) entry(pod types.UID, key K) *E {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.entries == nil {
		o.entries = map[types.UID]map[K]*E{}
	}
	of := o.entries[pod]
	if of == nil {
		of = map[K]*E{}
		o.entries[pod] = of
	}
	e := of[key]
	if e == nil {
		e = new(E)
		of[key] = e
	}
	return e
}

func (o *podEntries[K, E]) forget(pod types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.entries, pod)
}
