package podworker

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
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

// Once the workers are stopped, no other step begins, whatever waits.
func TestNothingBeginsAfterStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		syncs := &countedUntilCancelled{}
		workers := New(t.Context(), syncs, Options{Clock: clock.RealClock{}})
		workers.Update(Update{Type: Create, Pod: modelPod(0)})
		synctest.Wait()
		workers.Update(Update{Type: Change, Pod: modelPod(0)}) // waits for the step's end
		workers.Stop()
		workers.Update(Update{Type: Create, Pod: modelPod(1)})
		synctest.Wait()
		if syncs.n != 1 {
			t.Errorf("%d steps were begun, one of them before the end", syncs.n)
		}
	})
}

type countedUntilCancelled struct {
	untilCancelled
	n int
}

func (c *countedUntilCancelled) SyncPod(ctx context.Context, job Job) (Outcome, error) {
	c.n++
	return c.untilCancelled.SyncPod(ctx, job)
}

// The housekeeping forgets pods that have ended and that no source has, and ends the others.
func TestPodsThatNoSourceHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		workers := New(t.Context(), atOnce{}, Options{Clock: clock.RealClock{}})
		defer workers.Stop()
		ended, lost, kept := modelPod(0), modelPod(1), modelPod(2)
		workers.Update(Update{Type: Create, Pod: ended})
		workers.Update(Update{Type: Kill, Pod: ended, Kill: &KillOptions{}})
		workers.Update(Update{Type: Create, Pod: lost})
		workers.Update(Update{Type: Create, Pod: kept})
		synctest.Wait()
		if !workers.Finished(ended.UID) || !workers.TerminationRequested(ended.UID) || workers.Finished(kept.UID) || workers.TerminationRequested(kept.UID) {
			t.Errorf("phases: %s, %s", workers.Phase(ended.UID), workers.Phase(kept.UID))
		}
		left := workers.SyncKnownPods(map[types.UID]bool{kept.UID: true})
		if want := map[types.UID]bool{lost.UID: true, kept.UID: true}; !maps.Equal(left, want) {
			t.Errorf("left are %v, want %v", left, want)
		}
		synctest.Wait()
		if got := workers.Phase(lost.UID); got != Unknown {
			t.Errorf("the pod that no source has is %s", got)
		}
		if got := workers.Phase(kept.UID); got != Syncing {
			t.Errorf("the pod that a source has is %s", got)
		}
	})
}
