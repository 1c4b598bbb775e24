package podruntime

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// pace bounds how many containers of a pod are created and started, or begin to end, at a time. A
// pod has one shim. containerd 1.6's never answers again once 32 processes have exited while it is
// busy with another container, and while it makes many containers, starting more fails after two
// seconds ("lstat /proc/0/ns/ipc").
type pace chan struct{}

const (
	// sideBySide is how many: each has a process of runc's that exits, beside its own.
	sideBySide = 8
	// stopTurn is how long a container that takes its time to end keeps others from beginning to.
	stopTurn = 250 * time.Millisecond
)

func newPace() pace { return make(pace, sideBySide) }

// do makes a call when it is its turn; if ctx ends before, it returns ctx's error.
func (p pace) do(ctx context.Context, call func() error) error {
	if err := p.take(ctx); err != nil {
		return err
	}
	defer func() { <-p }()
	return call()
}

// stop makes a call that ends a container when it is its turn. Grace periods pass side by side: the
// next one has its turn after stopTurn, whether the container has ended or not, and what it waited
// is taken off its own, down to minimumGrace.
func (p pace) stop(ctx context.Context, clock clock.Clock, grace time.Duration, call func(grace time.Duration) error) error {
	began := clock.Now()
	if err := p.take(ctx); err != nil {
		return err
	}
	grace = max(grace-clock.Since(began), minimumGrace)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		turn := clock.NewTimer(stopTurn)
		defer turn.Stop()
		select {
		case <-turn.C():
		case <-ended:
		}
		<-p
	}()
	return call(grace)
}

func (p pace) take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case p <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
