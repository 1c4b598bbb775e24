package pleg

import (
	"time"

	"k8s.io/utils/clock"
)

// The interval between relists grows by a quarter each time nothing happened,
// from fastest to slowest.
const (
	fastest    = 40 * time.Millisecond
	slowest    = time.Second
	restFactor = 4 // rest this many times longer than a relist took
	// A runtime knows of the end of a process soon after the kernel does; it is asked
	// by then. If it does not, the relists that follow are frequent.
	settling = 10 * time.Millisecond
)

// pace is when the runtime is listed next. It is for one goroutine.
type pace struct {
	clock    clock.Clock
	timer    clock.Timer
	interval time.Duration
	due      time.Time
	rested   time.Time // before, the runtime is not listed for what ended
}

// newPace is due at once.
func newPace(clock clock.Clock) *pace {
	now := clock.Now()
	return &pace{clock: clock, timer: clock.NewTimer(0), interval: fastest, due: now, rested: now}
}

// soon brings the next relist forward to the fastest interval from now.
func (p *pace) soon() { p.forward(p.clock.Now().Add(fastest)) }

// atOnce brings it forward to when the runtime knows what has ended by now, but
// gives it the rest that it is due: many containers may end one after another.
func (p *pace) atOnce() {
	at := p.clock.Now().Add(settling)
	if at.Before(p.rested) {
		at = p.rested
	}
	p.forward(at)
}

func (p *pace) forward(at time.Time) {
	p.interval = fastest
	if at.Before(p.due) {
		p.in(at.Sub(p.clock.Now()))
	}
}

// relisted sets when the next relist is due after one that took so long: soon where
// something happened, and later each time where nothing did.
func (p *pace) relisted(happened bool, took time.Duration) {
	if happened {
		p.interval = fastest
	} else {
		p.interval = min(slowest, p.interval+p.interval/4)
	}
	// A runtime that takes its time is not asked all the time.
	rest := restFactor * took
	p.rested = p.clock.Now().Add(rest)
	p.in(max(p.interval, rest))
}

// rest is how long it is until the next relist.
func (p *pace) rest() time.Duration { return p.due.Sub(p.clock.Now()) }

func (p *pace) in(wait time.Duration) {
	p.due = p.clock.Now().Add(wait)
	p.timer.Stop()
	p.timer.Reset(wait)
}
