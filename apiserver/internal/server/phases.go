package server

import "context"

// phases are the phases of a server's life, each entered once and in this order.
// Parts of the server wait for them, or end with them.
type phases struct {
	// bootstrapped is closed when the objects that every cluster has are stored (start).
	bootstrapped chan struct{}
	// ready is closed when everything that decisions are based on has been read (start).
	ready chan struct{}
	// stopping is done when the server has been told to stop, and draining when
	// its streams have to end (serving).
	stopping, draining context.Context
	stop, endStreams   context.CancelFunc
}

func newPhases() phases {
	p := phases{bootstrapped: make(chan struct{}), ready: make(chan struct{})}
	p.stopping, p.stop = context.WithCancel(context.Background())
	p.draining, p.endStreams = context.WithCancel(context.Background())
	return p
}

// wait waits until done is closed; it reports false if ctx ends first.
func wait(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-done:
		return true
	}
}
