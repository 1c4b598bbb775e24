package waitingpods

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
)

// prebinding is a pod whose PreBind plugins run, or that waits for a slot to be bound.
type prebinding struct {
	cancel    context.CancelCauseFunc
	preempted error // why they are stopped, under Map.mu
}

// PreBind notes that a pod's PreBind plugins run, or that it waits for a slot, with the context
// that it returns, until end is called. end returns why that has been stopped, if it has; from
// then on the pod is about to be bound, and can't be preempted here any more.
func (m *Map) PreBind(ctx context.Context, uid types.UID) (during context.Context, end func() error) {
	during, cancel := context.WithCancelCause(ctx)
	p := &prebinding{cancel: cancel}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.prebinding[uid] = p
	return during, func() error {
		defer cancel(nil)
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.prebinding[uid] == p {
			delete(m.prebinding, uid)
		}
		return p.preempted
	}
}

// Preempt takes a pod's room away before it is bound: it ends the wait for Permit
// plugins, or the work of PreBind plugins, and reports whether there was either. It may
// be asked again while that ends.
func (m *Map) Preempt(uid types.UID, by string) bool {
	if m.Reject(uid, "", "preempted") {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p, runs := m.prebinding[uid]
	if runs && p.preempted == nil {
		p.preempted = errors.New("preempted by " + by)
		p.cancel(p.preempted)
	}
	return runs
}
