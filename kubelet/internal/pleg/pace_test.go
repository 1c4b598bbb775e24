package pleg

import (
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

// TestWhatEndsIsAskedForAtOnceButNotAllTheTime: an end on a quiet node is looked for
// as soon as the runtime may know of it, and a runtime that is slow keeps its rest
// however many containers end.
func TestWhatEndsIsAskedForAtOnceButNotAllTheTime(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	p := newPace(clock)
	for range 50 {
		p.relisted(false, time.Millisecond)
	}
	if p.rest() != slowest {
		t.Fatalf("at rest it is %v to the next relist", p.rest())
	}
	clock.Step(slowest / 2)
	if p.atOnce(); p.rest() != settling || p.interval != fastest {
		t.Errorf("%v from an end to the relist, and %v from that to the next", p.rest(), p.interval)
	}
	const took = 50 * time.Millisecond
	p.relisted(true, took)
	clock.Step(settling)
	if p.atOnce(); p.rest() != restFactor*took-settling {
		t.Errorf("%v from an end to the relist after one that took %v", p.rest(), took)
	}
}
