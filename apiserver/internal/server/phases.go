package server

import "context"

// phases are what a server goes through, each once and in this order; those who have
// to wait for one, or to end with it, are told by it.
type phases struct {
	// bootstrapped is closed when what every cluster has is stored (start).
	bootstrapped chan struct{}
	// ready is closed when all that decisions are based on has been read (start).
	ready chan struct{}
	// stopping ends when the server has been told to stop, and draining when its
	// streams have to end (serving).
	stopping, draining context.Context
	stop, endStreams   context.CancelFunc
}

func newPhases() phases {
	p := phases{bootstrapped: make(chan struct{}), ready: make(chan struct{})}
	p.stopping, p.stop = context.WithCancel(context.Background())
	p.draining, p.endStreams = context.WithCancel(context.Background())
	return p
}

// wait waits until done is closed; it reports false if ctx ends before.
func wait(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-done:
		return true
	}
}
