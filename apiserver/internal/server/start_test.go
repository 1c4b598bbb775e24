package server

import (
	"context"
	"errors"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/config"
)

// Checks that are not done yet don't fail livez during the start's grace
// period.
func TestLivezGracePeriod(t *testing.T) {
	t.Parallel()
	clock := testclock.NewFakeClock(time.Now())
	s := &process{clock: clock, options: &config.Options{LivezGrace: time.Minute}}
	unfinished := errors.New("not finished")
	check := s.inTime(func(context.Context) error { return unfinished })
	for _, step := range []struct {
		wait time.Duration
		want error
	}{{0, nil}, {time.Minute - 1, nil}, {1, unfinished}} {
		clock.Step(step.wait)
		if err := check(t.Context()); err != step.want {
			t.Errorf("%s later: %v, want %v", step.wait, err, step.want)
		}
	}
}
