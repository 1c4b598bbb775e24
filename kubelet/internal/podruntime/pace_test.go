package podruntime

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// Containers begin to end a few at a time, but none waits until another has used up its grace
// period, and all have ended when it is over.
func TestContainersBeginToEndAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, began, grace := newPace(), atomic.Int64{}, time.Minute
		var all sync.WaitGroup
		start := time.Now()
		for range 3 * sideBySide {
			all.Go(func() {
				err := p.stop(t.Context(), clock.RealClock{}, grace, func(grace time.Duration) error {
					began.Add(1)
					time.Sleep(grace) // it ignores the signal
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		for turn := int64(1); turn <= 3; turn++ {
			synctest.Wait()
			if n := began.Load(); n != turn*sideBySide {
				t.Errorf("in turn %d, %d have begun", turn, n)
			}
			time.Sleep(stopTurn)
		}
		all.Wait()
		if took := time.Since(start); took != grace {
			t.Errorf("it took %v, of a grace period of %v", took, grace)
		}
	})
}

// A container that waited for its turn has what it had left of its grace period, but not less than
// it always gets.
func TestWhatIsLeftOfAGracePeriod(t *testing.T) {
	for grace, want := range map[time.Duration]time.Duration{
		time.Minute: time.Minute - stopTurn, minimumGrace: minimumGrace, time.Second: minimumGrace, 0: minimumGrace,
	} {
		synctest.Test(t, func(t *testing.T) {
			p, all := newPace(), sync.WaitGroup{}
			defer all.Wait()
			for range sideBySide {
				all.Go(func() {
					_ = p.stop(t.Context(), clock.RealClock{}, time.Minute, func(grace time.Duration) error {
						time.Sleep(grace)
						return nil
					})
				})
			}
			synctest.Wait()
			err := p.stop(t.Context(), clock.RealClock{}, grace, func(left time.Duration) error {
				if left != want {
					t.Errorf("of %v, %v are left, want %v", grace, left, want)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// Starts are as many at a time, and whoever waits gives up with its context.
func TestContainersStartAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, under, done := newPace(), atomic.Int64{}, make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var gaveUp atomic.Int64
		for range sideBySide + 1 {
			all.Go(func() {
				err := p.do(ctx, func() error {
					under.Add(1)
					<-done
					return nil
				})
				if errors.Is(err, context.Canceled) {
					gaveUp.Add(1)
				}
			})
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(done)
		all.Wait()
		if under.Load() != sideBySide || gaveUp.Load() != 1 {
			t.Errorf("%d ran, %d gave up", under.Load(), gaveUp.Load())
		}
	})
}
