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

// newPace is due at once.
func newPace(clock clock.Clock) *relistTimer {
	now := clock.Now()
	return &relistTimer{clock: clock, timer: clock.NewTimer(0), interval: fastest, due: now}
}

// soon brings the next relist forward to the fastest interval from now.
func (p *relistTimer) soon() {
	p.interval = fastest
	if p.rest() > fastest {
		p.in(fastest)
	}
}

// relisted sets when the next relist is due, given how long the last one took: soon
// if something happened, and later each time if nothing did.
func (p *relistTimer) relisted(happened bool, took time.Duration) {
	if happened {
		p.interval = fastest
	} else {
		p.interval = min(slowest, 2*p.interval)
	}
	// A slow runtime is not asked all the time.
	p.in(max(p.interval, restFactor*took))
}

// rest is how long it is until the next relist.
func (p *relistTimer) rest() time.Duration { return p.due.Sub(p.clock.Now()) }

func (p *relistTimer) in(wait time.Duration) {
	p.due = p.clock.Now().Add(wait)
	p.timer.Stop()
	p.timer.Reset(wait)
}
