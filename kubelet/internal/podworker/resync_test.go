package podworker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// step is a Syncer whose steps the test ends.
type step struct {
	Syncer
	begun chan struct{}
	end   chan error
}

func (s *step) SyncPod(context.Context, Job) (Outcome, error) {
	s.begun <- struct{}{}
	return Outcome{}, <-s.end
}

// A change that comes during the retry of a failed step is not forgotten when
// the retry succeeds.
func TestWhatHappensDuringARepeatedStepIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &step{begun: make(chan struct{}, 1), end: make(chan error)}
		workers, pod := New(t.Context(), s, Options{Clock: clock.RealClock{}}), modelPod(0)
		defer workers.Stop()
		workers.Update(Update{Type: Create, Pod: pod})
		for workers.retry.Remaining(pod.UID) <= 2*afterFailure {
			time.Sleep(time.Second) // the bubble's clock
			workers.SyncDue()
			synctest.Wait()
			select {
			case <-s.begun:
				s.end <- errors.New("step failed")
				synctest.Wait()
			default:
			}
		}
		workers.Resync(pod.UID)
		time.Sleep(afterFailure)
		workers.SyncDue()
		<-s.begun
		workers.Resync(pod.UID) // during the step
		s.end <- nil
		synctest.Wait()
		select {
		case <-s.begun:
			s.end <- nil
		default:
			t.Error("the change during the step is forgotten")
		}
	})
}
