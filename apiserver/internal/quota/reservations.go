package quota

import (
	"context"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/informer"
)

// reservations holds the reservations of requests in flight: they are in the status
// of their quotas, but the objects may not be stored yet, so a recount must not
// remove them.
type reservations struct {
	mu        sync.Mutex
	byQuota   map[informer.Key]map[*corev1.ResourceList]struct{}
	listeners map[*func(informer.Key)]struct{}
}

// add records a reservation until leave is called.
func (l *reservations) add(key informer.Key, amounts corev1.ResourceList) (leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byQuota[key] == nil {
		l.byQuota[key] = map[*corev1.ResourceList]struct{}{}
	}
	entry := &amounts
	l.byQuota[key][entry] = struct{}{}
	return func() {
		l.mu.Lock()
		delete(l.byQuota[key], entry)
		if len(l.byQuota[key]) == 0 {
			delete(l.byQuota, key)
		}
		tell := slices.Collect(maps.Keys(l.listeners))
		l.mu.Unlock()
		for _, f := range tell {
			(*f)(key)
		}
	}
}

// sum is what is reserved of a quota.
func (l *reservations) sum(key informer.Key) corev1.ResourceList {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := corev1.ResourceList{}
	for entry := range l.byQuota[key] {
		addAmounts(sum, *entry)
	}
	return sum
}

// namespaceLocks admits one caller at a time to each namespace.
type namespaceLocks struct {
	mu    sync.Mutex
	locks map[string]*namespaceLock
}

type namespaceLock struct {
	waiting int
	claims  []*claim // of those that wait
	token   chan struct{}
}

// acquire waits for the turn in a namespace, or until ctx ends. Whoever has the turn may serve
// the claims of others: give is nil if mine has been. It may be nil.
func (t *namespaceLocks) acquire(ctx context.Context, namespace string, mine *claim) (give func(), err error) {
	t.mu.Lock()
	lock := t.locks[namespace]
	if lock == nil {
		lock = &namespaceLock{token: make(chan struct{}, 1)}
		t.locks[namespace] = lock
	}
	lock.waiting++
	var served chan struct{}
	if mine != nil {
		lock.claims = append(lock.claims, mine)
		served = mine.served
	}
	t.mu.Unlock()
	done := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		lock.claims = slices.DeleteFunc(lock.claims, func(c *claim) bool { return c == mine })
		if lock.waiting--; lock.waiting == 0 {
			delete(t.locks, namespace)
		}
	}
	select {
	case lock.token <- struct{}{}:
		return func() { <-lock.token; done() }, nil
	case <-served:
		done()
		return nil, nil
	case <-ctx.Done():
		done()
		return nil, ctx.Err()
	}
}

// takeClaims returns the claims that wait in a namespace, to the caller whose turn it is.
func (t *namespaceLocks) takeClaims(namespace string) []*claim {
	t.mu.Lock()
	defer t.mu.Unlock()
	claims := t.locks[namespace].claims
	t.locks[namespace].claims = nil
	return claims
}
