package pleg

import (
	"time"

	"k8s.io/utils/clock"
)

// The interval between relists doubles each time nothing happened, from fastest
// to slowest.
const (
	fastest    = 40 * time.Millisecond
	slowest    = time.Second
	restFactor = 4 // rest this many times longer than a relist took
)

// relistTimer is when the runtime is listed next. It is for one goroutine.
type relistTimer struct {
	clock    clock.Clock
	timer    clock.Timer
	interval time.Duration
	due      time.Time
}

// newRelistTimer is due at once.
func newRelistTimer(clock clock.Clock) *relistTimer {
	now := clock.Now()
	return &relistTimer{clock: clock, timer: clock.NewTimer(0), interval: fastest, due: now}
}

// soon brings the next relist forward to the fastest interval from now.
func (t *relistTimer) soon() {
	t.interval = fastest
	if t.rest() > fastest {
		t.in(fastest)
	}
}

// relisted sets when the next relist is due, given how long the last one took: soon
// if something happened, and later each time if nothing did.
func (t *relistTimer) relisted(happened bool, took time.Duration) {
	if happened {
		t.interval = fastest
	} else {
		t.interval = min(slowest, 2*t.interval)
	}
	// A slow runtime is not asked all the time.
	t.in(max(t.interval, restFactor*took))
}

// rest is how long it is until the next relist.
func (t *relistTimer) rest() time.Duration { return t.due.Sub(t.clock.Now()) }

func (t *relistTimer) in(wait time.Duration) {
	t.due = t.clock.Now().Add(wait)
	t.timer.Stop()
	t.timer.Reset(wait)
}
