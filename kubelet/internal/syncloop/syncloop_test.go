package syncloop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/pleg"
	"kctl/proto/core"
)

// recorder is a Handler that notes its calls.
type recorder struct {
	mu    sync.Mutex
	calls []string
	block chan struct{} // HandlePodSyncs waits for it, if set
}

func (r *recorder) note(call string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
}

func (r *recorder) taken() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}

func (r *recorder) HandlePodAdditions(pods []*core.Pod) { r.note(fmt.Sprint("add ", len(pods))) }
func (r *recorder) HandlePodUpdates(pods []*core.Pod)   { r.note(fmt.Sprint("update ", len(pods))) }
func (r *recorder) HandlePodRemoves(pods []*core.Pod)   { r.note(fmt.Sprint("remove ", len(pods))) }
func (r *recorder) HandlePodReconcile(pods []*core.Pod) { r.note(fmt.Sprint("reconcile ", len(pods))) }
func (r *recorder) HandleDue()                          { r.note("due") }
func (r *recorder) HandlePodCleanups(context.Context)   { r.note("cleanups") }
func (r *recorder) HandlePodSyncs(uids ...types.UID) {
	r.note(fmt.Sprint("sync ", uids))
	if r.block != nil {
		<-r.block
	}
}

type bed struct {
	*Loop
	recorder *recorder
	updates  chan core.PodUpdate
	events   chan pleg.Event
	probes   chan types.UID
	mu       sync.Mutex
	down     error
}

func (b *bed) setDown(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = err
}

func start(t *testing.T, block chan struct{}) *bed {
	b := &bed{recorder: &recorder{block: block}, updates: make(chan core.PodUpdate), events: make(chan pleg.Event), probes: make(chan types.UID)}
	b.Loop = New(Options{
		Updates:   b.updates,
		Lifecycle: b.events,
		Probes:    b.probes,
		Handler:   b.recorder,
		Heard:     func(source string) { b.recorder.note("heard " + source) },
		RuntimeError: func() error {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.down
		},
		Clock:  clock.RealClock{},
		Logger: zap.NewNop(),
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = b.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return b
}

func TestEverythingIsRouted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, nil)
		for _, op := range []core.PodOperation{core.ADD, core.UPDATE, core.DELETE, core.REMOVE, core.RECONCILE} {
			b.updates <- core.PodUpdate{Op: op, Pods: []*core.Pod{{}}, Source: "s"}
		}
		b.events <- pleg.Event{UID: "a", Type: pleg.ContainerDied}
		b.events <- pleg.Event{UID: "b", Type: pleg.ContainerRemoved}
		b.probes <- "c"
		synctest.Wait()
		want := []string{"add 1", "heard s", "update 1", "heard s", "update 1", "heard s", "remove 1", "heard s", "reconcile 1", "heard s", "sync [a]", "sync [c]"}
		if got := b.recorder.taken(); !slices.Equal(got, want) {
			t.Errorf("calls %q, want %q", got, want)
		}
		time.Sleep(4*time.Second + time.Millisecond) // the bubble's clock
		slices.Sort(want)
		got := b.recorder.taken()
		slices.Sort(got)
		if want := []string{"cleanups", "cleanups", "due", "due", "due", "due"}; !slices.Equal(got, want) {
			t.Errorf("calls in four seconds: %q, want %q", got, want)
		}
	})
}

func TestARuntimeThatIsDownHoldsTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, nil)
		b.setDown(errors.New("down"))
		time.Sleep(2 * time.Second) // the bubble's clock
		b.recorder.taken()
		time.Sleep(time.Hour)
		if got := b.recorder.taken(); len(got) > 0 {
			t.Errorf("calls while the runtime is down: %q", got)
		}
		if err := b.Healthy(); err != nil {
			t.Errorf("waiting for the runtime is not being stuck: %v", err)
		}
		b.setDown(nil)
		b.Wake()
		time.Sleep(time.Second + time.Millisecond)
		if got := b.recorder.taken(); !slices.Contains(got, "due") {
			t.Errorf("calls after the runtime came back: %q", got)
		}
	})
}

func TestAStuckHandlerShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		b := start(t, block)
		b.probes <- "a"
		time.Sleep(5 * time.Minute) // the bubble's clock
		if b.Healthy() == nil {
			t.Error("healthy though a handler has not returned for five minutes")
		}
		close(block)
	})
}

// evenClock refuses to measure from times that follow the machine's clock.
type evenClock struct {
	clock.RealClock
	t *testing.T
}

func (c evenClock) Since(from time.Time) time.Duration {
	if !strings.Contains(from.String(), " m=") {
		c.t.Errorf("an age is measured from %v, which moves when the machine's clock is set", from)
	}
	return c.RealClock.Since(from)
}

// Setting the machine's clock forward by a day does not make the kubelet
// unhealthy.
func TestHealthDoesNotFollowTheMachinesClock(t *testing.T) {
	l := New(Options{Clock: evenClock{t: t}})
	if err := l.Healthy(); err != nil {
		t.Error(err)
	}
}
