package quota

import (
	"context"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/facts"
)

// ledger holds the reservations of requests in flight: they are in the status
// of their quotas, but the objects may not be stored yet, so a recount must not
// remove them.
type ledger struct {
	mu     sync.Mutex
	open   map[facts.Key]map[*corev1.ResourceList]struct{}
	closed map[*func(facts.Key)]struct{}
}

// enter records a reservation until leave is called.
func (l *ledger) enter(key facts.Key, amounts corev1.ResourceList) (leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[key] == nil {
		l.open[key] = map[*corev1.ResourceList]struct{}{}
	}
	entry := &amounts
	l.open[key][entry] = struct{}{}
	return func() {
		l.mu.Lock()
		delete(l.open[key], entry)
		if len(l.open[key]) == 0 {
			delete(l.open, key)
		}
		tell := slices.Collect(maps.Keys(l.closed))
		l.mu.Unlock()
		for _, f := range tell {
			(*f)(key)
		}
	}
}

// sum is what is reserved of a quota.
func (l *ledger) sum(key facts.Key) corev1.ResourceList {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := corev1.ResourceList{}
	for entry := range l.open[key] {
		add(sum, *entry)
	}
	return sum
}

// turns admits one caller at a time to each namespace.
type turns struct {
	mu    sync.Mutex
	taken map[string]*turn
}

type turn struct {
	waiting int
	token   chan struct{}
}

// take waits for the turn in a namespace, or until ctx ends.
func (t *turns) take(ctx context.Context, namespace string) (give func(), err error) {
	t.mu.Lock()
	mine := t.taken[namespace]
	if mine == nil {
		mine = &turn{token: make(chan struct{}, 1)}
		t.taken[namespace] = mine
	}
	mine.waiting++
	t.mu.Unlock()
	done := func() {
		t.mu.Lock()
		if mine.waiting--; mine.waiting == 0 {
			delete(t.taken, namespace)
		}
		t.mu.Unlock()
	}
	select {
	case mine.token <- struct{}{}:
		return func() { <-mine.token; done() }, nil
	case <-ctx.Done():
		done()
		return nil, ctx.Err()
	}
}
