package pleg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/podcache"
	"kctl/kubelet/internal/runtimestate"
)

func running(uid string, state runtimestate.ContainerState) *runtimestate.RunningPod {
	pod := &runtimestate.RunningPod{UID: types.UID(uid)}
	if state != "" {
		pod.Containers = []*runtimestate.RunningContainer{{ID: runtimestate.ContainerID{Type: "t", ID: "c-" + uid}, State: state}}
	}
	return pod
}

func TestCompare(t *testing.T) {
	const none = runtimestate.ContainerState("")
	for _, c := range []struct {
		name          string
		before, after *runtimestate.RunningPod
		want          []EventType
	}{
		{"nothing new", running("p", runtimestate.StateRunning), running("p", runtimestate.StateRunning), nil},
		{"started", running("p", none), running("p", runtimestate.StateRunning), []EventType{ContainerStarted}},
		{"created by its worker", running("p", none), running("p", runtimestate.StateCreated), nil},
		{"found created", nil, running("p", runtimestate.StateCreated), []EventType{ContainerChanged}},
		{"died", running("p", runtimestate.StateRunning), running("p", runtimestate.StateExited), []EventType{ContainerDied}},
		{"born and died between lists", nil, running("p", runtimestate.StateExited), []EventType{ContainerDied}},
		{"lost", running("p", runtimestate.StateRunning), running("p", runtimestate.StateUnknown), []EventType{ContainerChanged}},
		{"removed dead", running("p", runtimestate.StateExited), nil, []EventType{ContainerRemoved}},
		{"removed alive", running("p", runtimestate.StateRunning), running("p", none), []EventType{ContainerDied, ContainerRemoved}},
	} {
		var got []EventType
		for _, e := range compare("p", c.before, c.after) {
			got = append(got, e.Type)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// fakeRuntime answers with what the test sets; it can fail.
type fakeRuntime struct {
	mu     sync.Mutex
	pods   []*runtimestate.RunningPod
	lists  int
	listed error
	status error
}

func (r *fakeRuntime) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *fakeRuntime) Pods(context.Context) ([]*runtimestate.RunningPod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lists++
	return r.pods, r.listed
}

func (r *fakeRuntime) PodStatus(_ context.Context, uid types.UID, _, _ string) (*runtimestate.PodStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := &runtimestate.PodStatus{UID: uid, Name: "found"}
	for _, pod := range r.pods {
		for _, c := range pod.Containers {
			if pod.UID == uid {
				found.Containers = append(found.Containers, &runtimestate.ContainerStatus{ID: c.ID, State: c.State})
			}
		}
	}
	return found, r.status
}

func (r *fakeRuntime) Name() string { return "t" }

func start(t *testing.T, r Runtime) (*Generator, *podcache.Cache) {
	cache := podcache.New()
	g := New(Options{Runtime: r, Cache: cache, Clock: clock.RealClock{}, Logger: zap.NewNop()})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = g.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return g, cache
}

func TestRelistReportsAndFillsTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeRuntime{pods: []*runtimestate.RunningPod{running("p", runtimestate.StateRunning)}}
		g, cache := start(t, r)
		if e := <-g.Events(); e.UID != "p" || e.Type != ContainerStarted {
			t.Errorf("first event %v", e)
		}
		if s, err := cache.Get("p"); err != nil || s.Name != "found" {
			t.Errorf("cache has %v, %v", s, err)
		}
		r.set(func() { r.pods = nil })
		for _, want := range []EventType{ContainerDied, ContainerRemoved} {
			if e := <-g.Events(); e.Type != want {
				t.Errorf("event %v, want %s", e, want)
			}
		}
		if s, _ := cache.Get("p"); s.Name != "" {
			t.Errorf("cache still has %v", s)
		}
		// An answer to an earlier request comes late.
		cache.Set("p", nil, errors.New("timed out"), time.Now())
		time.Sleep(2 * slowest) // the bubble's clock
		if _, err := cache.Get("p"); err != nil {
			t.Errorf("of a pod that is gone the cache still has %v", err)
		}
	})
}

func TestIdleRelistsGrowRareAndAPokeMakesThemFrequent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeRuntime{}
		g, _ := start(t, r)
		count := func(d time.Duration) int {
			before := 0
			r.set(func() { before = r.lists })
			time.Sleep(d) // the bubble's clock
			after := 0
			r.set(func() { after = r.lists })
			return after - before
		}
		time.Sleep(time.Minute)
		if n := count(10 * time.Second); n > 11 {
			t.Errorf("%d relists in ten idle seconds", n)
		}
		g.RelistSoon()
		if n := count(time.Second); n < 4 { // after 40, 120, 280 and 600 ms
			t.Errorf("%d relists in the second after a poke", n)
		}
	})
}

func TestAPodIsInspectedWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeRuntime{pods: []*runtimestate.RunningPod{running("p", runtimestate.StateExited)}}
		g, cache := start(t, r)
		<-g.Events()
		// A worker's own, older view of the pod comes late.
		cache.Set("p", &runtimestate.PodStatus{Name: "stale", Containers: []*runtimestate.ContainerStatus{{}}}, nil, time.Now())
		g.RequestReinspect("p")
		if e := <-g.Events(); e.UID != "p" {
			t.Errorf("event %v", e)
		}
		if s, _ := cache.Get("p"); s.Name != "found" {
			t.Errorf("cache still has what was written late: %v", s)
		}
	})
}

func TestPokesDoNotPutARelistOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeRuntime{}
		g, _ := start(t, r)
		for range 1000 {
			time.Sleep(time.Millisecond) // the bubble's clock
			g.RelistSoon()
		}
		r.set(func() {
			if r.lists < 10 {
				t.Errorf("%d relists in a second of pokes", r.lists)
			}
		})
	})
}

func TestFailuresAreKeptAndRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("runtime is down")
		r := &fakeRuntime{pods: []*runtimestate.RunningPod{running("p", runtimestate.StateRunning)}, status: down}
		g, cache := start(t, r)
		<-g.Events()
		if _, err := cache.Get("p"); !errors.Is(err, down) {
			t.Errorf("the cache hides that the pod's status could not be had: %v", err)
		}
		r.set(func() { r.status = nil })
		time.Sleep(2 * time.Second)
		if s, err := cache.Get("p"); err != nil || s.Name != "found" {
			t.Errorf("the pod was not inspected again: %v, %v", s, err)
		}
		r.set(func() { r.listed = down })
		time.Sleep(2 * time.Second)
		g.mu.Lock()
		if !errors.Is(g.failed, down) {
			t.Errorf("the last relist failed with %v", g.failed)
		}
		g.mu.Unlock()
		if err := g.Healthy(); err != nil {
			t.Errorf("not healthy after two seconds: %v", err)
		}
		time.Sleep(4 * time.Minute)
		if g.Healthy() == nil {
			t.Error("healthy after four minutes without a list")
		}
	})
}

// hanging does not answer about one of its pods.
type hanging struct {
	fakeRuntime
	about types.UID
}

func (r *hanging) PodStatus(ctx context.Context, uid types.UID, name, namespace string) (*runtimestate.PodStatus, error) {
	if uid == r.about {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return r.fakeRuntime.PodStatus(ctx, uid, name, namespace)
}

// TestARuntimeThatTakesAllOfItsTime: what it told about the other pods is not lost.
func TestARuntimeThatTakesAllOfItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const others = 20
		r := &hanging{about: "stuck"}
		r.pods = append(r.pods, running("stuck", runtimestate.StateRunning))
		for i := range others {
			r.pods = append(r.pods, running(fmt.Sprint("p", i), runtimestate.StateRunning))
		}
		g, _ := start(t, r)
		time.Sleep(relistTimeout + time.Second) // the bubble's clock
		synctest.Wait()
		told := map[types.UID]bool{}
		for len(g.Events()) > 0 {
			told[(<-g.Events()).UID] = true
		}
		if len(told) != others+1 {
			t.Errorf("events of %d pods of %d", len(told), others+1)
		}
	})
}

// TestASyncLoopThatIsBehind: it takes no events while the runtime is ill, nor while the generator
// is, which must therefore not become so by waiting for it.
func TestASyncLoopThatIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pods = eventBuffer + 500
		r := &fakeRuntime{}
		for i := range pods {
			r.pods = append(r.pods, running(fmt.Sprint("p", i), runtimestate.StateRunning))
		}
		g, _ := start(t, r)
		time.Sleep(unhealthyAfter + time.Minute) // the bubble's clock; the runtime is ill
		told := map[types.UID]bool{}
		for {
			if err := g.Healthy(); err != nil {
				t.Fatalf("after events of %d pods: %v", len(told), err)
			}
			synctest.Wait()
			if len(g.Events()) == 0 {
				break
			}
			told[(<-g.Events()).UID] = true
		}
		if len(told) != pods {
			t.Errorf("events of %d pods of %d", len(told), pods)
		}
	})
}

// TestAWorkersOwnStartIsNoNews: what a worker has reported is not queried
// again, and its end is still seen.
func TestAWorkersOwnStartIsNoNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeRuntime{}
		g, cache := start(t, r)
		synctest.Wait()
		started := running("p", runtimestate.StateRunning)
		own := &runtimestate.PodStatus{Name: "own", Containers: []*runtimestate.ContainerStatus{{ID: started.Containers[0].ID, State: runtimestate.StateRunning}}}
		cache.Set("p", own, nil, time.Now())
		r.set(func() { r.pods = []*runtimestate.RunningPod{started} })
		time.Sleep(10 * slowest) // the bubble's clock
		synctest.Wait()
		if s, _ := cache.Get("p"); len(g.Events()) > 0 || s != own {
			t.Errorf("%d events, and the cache has %v", len(g.Events()), s)
		}
		// Together with a change by somebody else, it is news.
		both := running("p", runtimestate.StateRunning)
		other := *both.Containers[0]
		other.ID.ID = "other"
		both.Containers = append(both.Containers, &other)
		r.set(func() { r.pods = []*runtimestate.RunningPod{both} })
		if e := <-g.Events(); e.Type != ContainerStarted || e.ContainerID != "other" {
			t.Errorf("event %v", e)
		}
		r.set(func() { r.pods = []*runtimestate.RunningPod{running("p", runtimestate.StateExited)} })
		got := []EventType{(<-g.Events()).Type, (<-g.Events()).Type, (<-g.Events()).Type}
		slices.Sort(got)
		if !slices.Equal(got, []EventType{ContainerDied, ContainerDied, ContainerRemoved}) {
			t.Errorf("events %v", got)
		}
	})
}
