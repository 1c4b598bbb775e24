package pleg

import (
	"context"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/podcache"
	"kctl/kubelet/internal/runtimestate"
)

// fakeExits records what is watched.
type fakeExits struct {
	mu      sync.Mutex
	watched map[string]bool
	waited  chan struct{}
}

func (e *fakeExits) Watch(_ context.Context, running map[string]bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.watched = maps.Clone(running)
}

func (e *fakeExits) Wait() { close(e.waited) }

func (e *fakeExits) watches(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.watched[id]
}

// TestEndsAreWatchedForBetweenRareRelists: running containers are watched when
// nothing has happened for a while; before that, relists see their ends soon
// enough.
func TestEndsAreWatchedForBetweenRareRelists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alive, dead := running("alive", runtimestate.StateRunning), running("dead", runtimestate.StateExited)
		r := &fakeRuntime{pods: []*runtimestate.RunningPod{alive, dead}}
		exits := &fakeExits{waited: make(chan struct{})}
		g := New(Options{Runtime: r, Cache: podcache.New(), Clock: clock.RealClock{}, Logger: zap.NewNop(), Exits: exits})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = g.Run(ctx) }()
		<-g.Events()
		synctest.Wait()
		id, gone := alive.Containers[0].ID.ID, dead.Containers[0].ID.ID
		if exits.watches(id) {
			t.Error("watched while relists are frequent")
		}
		<-g.Events()
		time.Sleep(time.Minute) // the bubble's clock
		if !exits.watches(id) || exits.watches(gone) {
			t.Errorf("watched at rest: %v", exits.watched)
		}
		// The container ends just after a relist.
		before := time.Now()
		r.set(func() { r.pods = []*runtimestate.RunningPod{running("alive", runtimestate.StateExited), dead} })
		g.ContainerEnded(id)
		if e := <-g.Events(); e.Type != ContainerDied || time.Since(before) > 0 {
			t.Errorf("%v after %v", e, time.Since(before))
		}
		if status, err := g.cache.Get(alive.UID); err != nil || len(status.Running()) > 0 {
			t.Errorf("in the cache: %v, %v", status, err)
		}
		// A container that no list has shown yet is found by the next one, soon.
		before = time.Now()
		r.set(func() { r.pods = append(r.pods, running("new", runtimestate.StateExited)) })
		g.ContainerEnded("unknown")
		if e := <-g.Events(); e.UID != "new" || time.Since(before) > fastest {
			t.Errorf("%v after %v", e, time.Since(before))
		}
		time.Sleep(time.Minute)
		if exits.watches(id) {
			t.Error("watched after its end")
		}
		cancel()
		<-exits.waited
	})
}
