package podworker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// A pod whose full name another one holds starts when that one has gone, not later.
func TestTheNextOfANameStartsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		workers := New(t.Context(), atOnce{}, Options{Clock: clock.RealClock{}})
		defer workers.Stop()
		first, second := modelPod(0), modelPod(3)
		workers.Update(Update{Type: Create, Pod: first})
		synctest.Wait()
		workers.Update(Update{Type: Create, Pod: second})
		synctest.Wait()
		if got := workers.Phase(second.UID); got != Waiting {
			t.Fatalf("beside another pod of its name, the second one is %s", got)
		}
		workers.Update(Update{Type: Kill, Pod: first, Kill: &KillOptions{Removed: true}})
		synctest.Wait()
		if got := workers.Phase(second.UID); got != Syncing {
			t.Errorf("after the first one's end, the second one is %s", got)
		}
	})
}

// A pod that asks for no time of its own is looked at again after the usual interval.
func TestTheUsualInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		syncs := &counted{}
		workers := New(t.Context(), syncs, Options{Clock: clock.RealClock{}, Resync: time.Minute})
		defer workers.Stop()
		workers.Update(Update{Type: Create, Pod: modelPod(0)})
		synctest.Wait()
		for second := range 90 { // the interval, and its jitter
			workers.SyncDue()
			synctest.Wait()
			if syncs.n > 1 && second < 50 {
				t.Fatalf("looked at again after %d seconds", second)
			}
			time.Sleep(time.Second) // the bubble's clock
		}
		if syncs.n != 2 {
			t.Errorf("looked at %d times in 90 seconds", syncs.n)
		}
	})
}

// counted counts steps, and keeps the last one's context.
type counted struct {
	atOnce
	n   int
	ctx context.Context
}

func (c *counted) SyncPod(ctx context.Context, _ Job) (Outcome, error) {
	c.n, c.ctx = c.n+1, ctx
	return Outcome{}, nil
}

// A step's context is given back when the step is done.
func TestContextsEndWithTheirSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		syncs := &counted{}
		workers := New(t.Context(), syncs, Options{Clock: clock.RealClock{}})
		defer workers.Stop()
		workers.Update(Update{Type: Create, Pod: modelPod(0)})
		synctest.Wait()
		if syncs.ctx.Err() == nil {
			t.Error("the context of a step outlives it")
		}
	})
}

// untilCancelled is a Syncer whose steps end only with their context.
type untilCancelled struct{ Syncer }

func (untilCancelled) SyncPod(ctx context.Context, _ Job) (Outcome, error) {
	<-ctx.Done()
	return Outcome{}, ctx.Err()
}

func TestStopEndsSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		workers := New(t.Context(), untilCancelled{}, Options{Clock: clock.RealClock{}})
		workers.Update(Update{Type: Create, Pod: modelPod(0)})
		synctest.Wait()
		workers.Stop() // the bubble would end in a deadlock
	})
}
