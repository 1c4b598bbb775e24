package podworker

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"k8s.io/utils/clock"

	"kctl/proto/core"
)

// atOnce is a Syncer whose steps succeed at once.
type atOnce struct{ Syncer }

func (atOnce) SyncPod(context.Context, Job) (Outcome, error) { return Outcome{}, nil }
func (atOnce) SyncTerminatingPod(context.Context, Job) error { return nil }
func (atOnce) SyncTerminatedPod(context.Context, Job) error  { return nil }

// A pod that comes again under its UID, as a static pod does whose file is
// changed, is told of once it is started, and not if it is gone by then.
func TestPodsThatComeAgainAreToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var again []string
		workers := New(t.Context(), atOnce{}, Options{
			Clock: clock.RealClock{}, Restarted: func(pod *core.Pod) { again = append(again, string(pod.UID)) },
		})
		defer workers.Stop()
		comes := func(i int) { workers.Update(Update{Type: Create, Pod: modelPod(i)}) }
		goes := func(i int) {
			workers.Update(Update{Type: Kill, Pod: modelPod(i), Kill: &KillOptions{Removed: true}})
		}
		comes(0)
		comes(1)
		synctest.Wait()
		goes(0)
		comes(0) // before the old one has ended
		goes(1)
		comes(1)
		goes(1)
		synctest.Wait()
		if !slices.Equal(again, []string{"uid-0"}) {
			t.Errorf("told of %q", again)
		}
		if got := workers.Phase("uid-0"); got != Syncing {
			t.Errorf("the pod that came again is %s", got)
		}
	})
}
