package pleg

import (
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

// TestARuntimeThatTakesItsTimeIsGivenIt: lists are rare when nothing happens,
// and when they take long.
func TestARuntimeThatTakesItsTimeIsGivenIt(t *testing.T) {
	p := newRelistTimer(testclock.NewFakeClock(time.Unix(1000, 0)))
	for range 10 {
		p.relisted(false, time.Millisecond)
	}
	if p.rest() != slowest {
		t.Errorf("at rest it is %v to the next relist", p.rest())
	}
	if p.soon(); p.rest() != fastest {
		t.Errorf("it is %v to the next relist, which is to be soon", p.rest())
	}
	const took = 50 * time.Millisecond
	if p.relisted(true, took); p.rest() != restFactor*took {
		t.Errorf("%v rest after a relist that took %v", p.rest(), took)
	}
}
