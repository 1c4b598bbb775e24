package pleg

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/podcache"
	"kctl/kubelet/internal/runtimestate"
)

// talking is a runtime with an event stream, which the test can break.
type talking struct {
	fakeRuntime
	statuses map[types.UID]*runtimestate.PodStatus
	asked    []types.UID

	events                      chan *runtimeapi.ContainerEventResponse
	broken                      chan error
	refuse                      error
	opened, connected, failures int
}

func (r *talking) PodStatus(_ context.Context, uid types.UID, name, namespace string) (*runtimestate.PodStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, uid)
	if s := r.statuses[uid]; s != nil {
		return s, nil
	}
	return &runtimestate.PodStatus{UID: uid, Name: name, Namespace: namespace}, r.status
}

type receiver struct {
	ctx context.Context
	r   *talking
}

func (c receiver) Recv() (*runtimeapi.ContainerEventResponse, error) {
	select {
	case e := <-c.r.events:
		return e, nil
	case err := <-c.r.broken:
		return nil, err
	case <-c.ctx.Done():
		return nil, c.ctx.Err()
	}
}

func (r *talking) open(ctx context.Context) (Receiver, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opened++
	return receiver{ctx, r}, r.refuse
}

func (r *talking) say(uid string) {
	r.events <- &runtimeapi.ContainerEventResponse{
		CreatedAt:        time.Now().UnixNano(),
		PodSandboxStatus: &runtimeapi.PodSandboxStatus{Metadata: &runtimeapi.PodSandboxMetadata{Uid: uid, Name: uid}},
	}
	synctest.Wait()
}

// have sets the state of a pod's container in the runtime.
func (r *talking) have(uid types.UID, state runtimestate.ContainerState) {
	r.set(func() {
		r.statuses[uid] = &runtimestate.PodStatus{UID: uid, Containers: []*runtimestate.ContainerStatus{{ID: runtimestate.ContainerID{
			Type: "t", ID: "c-" + string(uid),
		}, State: state}}}
		r.pods = nil
		for uid, s := range r.statuses {
			r.pods = append(r.pods, running(string(uid), s.Containers[0].State))
		}
	})
}

// take returns, and forgets, the events that were sent and the calls to the
// runtime.
func (r *talking) take(g *Generator) (events []EventType, lists int, asked []types.UID) {
	synctest.Wait()
	for {
		select {
		case e := <-g.Events():
			events = append(events, e.Type)
			continue
		default:
		}
		r.set(func() {
			lists, asked = r.lists, r.asked
			r.lists, r.asked = 0, nil
		})
		return events, lists, asked
	}
}

func listening(t *testing.T, test func(r *talking, g *Generator, cache *podcache.Cache)) {
	listeningLogged(t, zap.NewNop(), test)
}

func listeningLogged(t *testing.T, logger *zap.Logger, test func(r *talking, g *Generator, cache *podcache.Cache)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &talking{statuses: map[types.UID]*runtimestate.PodStatus{}, events: make(chan *runtimeapi.ContainerEventResponse), broken: make(chan error)}
		cache := podcache.New()
		g := New(Options{Runtime: r, Cache: cache, Clock: clock.RealClock{}, Logger: logger, Stream: &Stream{
			Open: r.open, Connected: func() { r.set(func() { r.connected++ }) }, Failed: func() { r.set(func() { r.failures++ }) }, Received: func(time.Duration) {},
		}})
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { _ = g.Run(ctx) })
		defer done.Wait()
		defer cancel()
		test(r, g, cache)
	})
}

func TestEventsTakeThePlaceOfLists(t *testing.T) {
	listening(t, func(r *talking, g *Generator, cache *podcache.Cache) {
		r.say("first") // shows that the stream is open
		if !g.Streaming() {
			t.Fatal("an event came, and the stream is not used")
		}
		time.Sleep(time.Minute) // the bubble's clock
		if _, lists, _ := r.take(g); lists > 8 {
			t.Errorf("%d lists in a minute of events", lists)
		}
		r.have("a", runtimestate.StateRunning)
		r.say("a")
		events, lists, asked := r.take(g)
		if !slices.Equal(events, []EventType{ContainerStarted}) || lists != 0 || !slices.Equal(asked, []types.UID{"a"}) {
			t.Errorf("started: events %v after %d lists and questions about %v", events, lists, asked)
		}
		if s, err := cache.Get("a"); err != nil || len(s.Containers) != 1 {
			t.Errorf("in the cache: %+v, %v", s, err)
		}
		r.have("a", runtimestate.StateExited)
		r.say("a")
		if events, _, _ := r.take(g); !slices.Equal(events, []EventType{ContainerDied}) {
			t.Errorf("died: events %v", events)
		}
		r.set(func() { delete(r.statuses, "a"); r.pods = nil })
		r.say("a")
		if events, _, _ := r.take(g); !slices.Equal(events, []EventType{ContainerRemoved}) {
			t.Errorf("removed: events %v", events)
		}
		g.RequestReinspect("b")
		g.RelistSoon()
		if _, lists, asked := r.take(g); lists != 0 || !slices.Equal(asked, []types.UID{"b"}) {
			t.Errorf("asked to inspect: %d lists and questions about %v", lists, asked)
		}
		// An event that the runtime forgets to send is made up for.
		r.have("c", runtimestate.StateRunning)
		time.Sleep(streamed)
		if events, _, _ := r.take(g); !slices.Equal(events, []EventType{ContainerStarted}) {
			t.Errorf("not told of: events %v", events)
		}
		// A pod status that can't be read is requested again, but not endlessly.
		r.set(func() {
			r.status = errors.New("busy")
			delete(r.statuses, "c")
			r.pods = []*runtimestate.RunningPod{running("c", runtimestate.StateRunning)}
		})
		r.say("c")
		if _, _, asked := r.take(g); len(asked) != 1 {
			t.Errorf("a status that failed was asked for %d times at once", len(asked))
		}
		time.Sleep(2 * fastest)
		if _, _, asked := r.take(g); len(asked) == 0 {
			t.Error("a status that failed is not asked for again soon")
		}
		r.set(func() { r.status, r.listed = nil, errors.New("busy") })
		time.Sleep(2 * streamed)
		r.set(func() { r.listed = nil })
		r.take(g)
		time.Sleep(2 * slowest)
		if _, lists, _ := r.take(g); lists == 0 {
			t.Error("a list that failed is not asked for again soon")
		}
		time.Sleep(streamed)
		// An event without a pod causes a list.
		r.take(g)
		r.events <- &runtimeapi.ContainerEventResponse{}
		time.Sleep(fastest)
		if _, lists, _ := r.take(g); lists != 1 {
			t.Errorf("%d lists for an event without a pod", lists)
		}
	})
}

// A container that ends while its pod's worker is still starting others: the worker
// writes what it saw of its start over what the event told.
func TestAnEndIsToldAgainAfterAnOlderStatus(t *testing.T) {
	listening(t, func(r *talking, g *Generator, cache *podcache.Cache) {
		r.say("first")
		r.have("a", runtimestate.StateExited)
		r.say("a")
		r.take(g)
		stale := &runtimestate.PodStatus{UID: "a", Containers: []*runtimestate.ContainerStatus{{ID: runtimestate.ContainerID{Type: "t", ID: "c-a"},
			State: runtimestate.StateRunning}}}
		cache.Set("a", stale, nil, time.Now())
		g.RequestReinspect("a")
		if events, lists, _ := r.take(g); !slices.Equal(events, []EventType{ContainerDied}) || lists != 0 {
			t.Errorf("events %v after %d lists", events, lists)
		}
		g.RequestReinspect("a")
		if events, _, _ := r.take(g); len(events) != 0 {
			t.Errorf("asked again, with nothing new: events %v", events)
		}
	})
}

// A worker that reports its container's start while the pod is inspected has the newer word:
// what the inspection does not show yet has not died.
func TestAnOlderInspectionTellsOfNoEnd(t *testing.T) {
	listening(t, func(r *talking, g *Generator, cache *podcache.Cache) {
		r.say("first")
		r.have("a", runtimestate.StateExited)
		r.say("a")
		r.take(g)
		started := &runtimestate.PodStatus{UID: "a", Containers: []*runtimestate.ContainerStatus{
			{ID: runtimestate.ContainerID{Type: "t", ID: "c-a"}, State: runtimestate.StateExited},
			{ID: runtimestate.ContainerID{Type: "t", ID: "c-b"}, State: runtimestate.StateRunning},
		}}
		cache.Set("a", started, nil, time.Now().Add(time.Millisecond))
		g.RequestReinspect("a")
		if events, _, _ := r.take(g); len(events) != 0 {
			t.Errorf("events %v", events)
		}
	})
}

func TestAStreamThatBreaksIsOpenedAgain(t *testing.T) {
	listening(t, func(r *talking, g *Generator, _ *podcache.Cache) {
		r.say("first")
		r.set(func() { r.refuse = status.Error(codes.Unavailable, "down") })
		r.broken <- errors.New("broken")
		synctest.Wait()
		if g.Streaming() {
			t.Error("the stream is gone, and relied on")
		}
		r.take(g)
		r.have("a", runtimestate.StateRunning)
		time.Sleep(slowest) // the bubble's clock
		if events, lists, _ := r.take(g); lists == 0 || !slices.Equal(events, []EventType{ContainerStarted}) {
			t.Errorf("without the stream: %d lists, events %v", lists, events)
		}
		time.Sleep(10 * time.Minute)
		r.set(func() {
			if r.opened < 15 || r.opened > 40 || r.failures != r.opened || r.connected != 1 {
				t.Errorf("%d attempts in ten minutes, %d failures, %d successes", r.opened, r.failures, r.connected)
			}
			r.refuse = nil
		})
		time.Sleep(time.Minute)
		r.have("b", runtimestate.StateRunning)
		r.take(g)
		r.say("b")
		if !g.Streaming() {
			t.Error("the stream is back, and not used")
		}
	})
}

// A runtime that ends each stream after one event is asked for the next one less and less often,
// and what is logged of it is one line.
func TestAStreamThatEndsAgainAndAgain(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	listeningLogged(t, zap.New(core), func(r *talking, g *Generator, _ *podcache.Cache) {
		stop := time.After(10 * time.Minute) // the bubble's clock
		for range 1000 {
			select {
			case r.events <- &runtimeapi.ContainerEventResponse{}:
				r.broken <- errors.New("that was all")
				continue
			case <-stop:
			}
			break
		}
		r.set(func() {
			if r.opened < 15 || r.opened > 40 {
				t.Errorf("%d streams in ten minutes", r.opened)
			}
		})
		if n := lines.FilterMessageSnippet("broke off").Len(); n != 1 {
			t.Errorf("%d lines say that they broke off", n)
		}
		// One that lasts is a new beginning.
		r.events <- &runtimeapi.ContainerEventResponse{}
		time.Sleep(reconnect.Max)
		r.broken <- errors.New("broken")
		time.Sleep(2 * reconnect.Initial)
		synctest.Wait()
		select {
		case r.events <- &runtimeapi.ContainerEventResponse{}:
		default:
			t.Error("a stream that had lasted is not opened again at once")
		}
	})
}

func TestARuntimeWithoutEventsIsLeftAlone(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	listeningLogged(t, zap.New(core), func(r *talking, g *Generator, _ *podcache.Cache) {
		r.broken <- status.Error(codes.Unimplemented, "unknown method GetContainerEvents")
		time.Sleep(time.Minute) // the bubble's clock
		if _, lists, _ := r.take(g); lists < 50 || g.Streaming() {
			t.Errorf("%d lists in a minute without events", lists)
		}
		r.set(func() {
			if r.opened != 1 {
				t.Errorf("%d attempts in a minute", r.opened)
			}
		})
		time.Sleep(unstreamed)
		r.set(func() {
			if r.opened != 2 {
				t.Errorf("%d attempts after five minutes more", r.opened)
			}
		})
		r.broken <- status.Error(codes.Unimplemented, "unknown method GetContainerEvents")
		synctest.Wait()
		if n := lines.FilterMessageSnippet("has no events").Len(); n != 1 {
			t.Errorf("%d lines say that there are no events", n)
		}
	})
}

// A runtime that does not say whom its events are about is not listed for each of them, and
// what its events say besides is not kept.
func TestEventsOfNobody(t *testing.T) {
	listening(t, func(r *talking, g *Generator, _ *podcache.Cache) {
		r.say("first") // shows that the stream is open
		time.Sleep(time.Second)
		r.take(g)
		for range 1000 {
			r.say("")
			r.say(strings.Repeat("u", maxUID+1))
		}
		r.have("a", runtimestate.StateRunning)
		time.Sleep(time.Second)
		events, lists, asked := r.take(g)
		if !slices.Equal(events, []EventType{ContainerStarted}) || lists != 1 || !slices.Equal(asked, []types.UID{"a"}) {
			t.Errorf("events %v after %d lists and questions about %d pods", events, lists, len(asked))
		}
	})
}
