package etcd

import (
	"context"
	"sync"
)

// revisions lets any number of readers share few requests for the current
// revision: while one is in flight, all later callers wait for the next one
// together. They cannot share the first: it may have been answered before a
// write that they know of.
type revisions struct {
	ask func(context.Context) (int64, error)

	mu      sync.Mutex
	running *revisionCall
	next    *revisionCall
}

type revisionCall struct {
	done     chan struct{}
	revision int64
	err      error
}

func (r *revisions) current(ctx context.Context) (int64, error) {
	call := r.join(ctx)
	select {
	case <-call.done:
		return call.revision, call.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// join returns the call whose answer will be new enough, and starts it if none
// is in flight.
func (r *revisions) join(ctx context.Context) *revisionCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		r.running = &revisionCall{done: make(chan struct{})}
		// The call outlives the reader that started it, since others may wait for it.
		// ask bounds its time.
		go r.run(context.WithoutCancel(ctx), r.running)
		return r.running
	}
	if r.next == nil {
		r.next = &revisionCall{done: make(chan struct{})}
	}
	return r.next
}

func (r *revisions) run(ctx context.Context, call *revisionCall) {
	for call != nil {
		call.revision, call.err = r.ask(ctx)
		close(call.done)
		r.mu.Lock()
		call, r.next = r.next, nil
		r.running = call
		r.mu.Unlock()
	}
}
