package pleg

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/backoff"
)

// Receiver is a stream of the runtime's events that is open.
type Receiver interface {
	Recv() (*runtimeapi.ContainerEventResponse, error)
}

// Stream opens a runtime's event stream, with callbacks about it. All are
// needed.
type Stream struct {
	Open func(ctx context.Context) (Receiver, error)
	// Connected and Failed are called for each attempt, Received for each event,
	// with its age on arrival.
	Connected, Failed func()
	Received          func(age time.Duration)
}

const (
	// streamed is how often the runtime is listed while there is an event stream:
	// runtimes drop events when they have too many.
	streamed = 10 * time.Second
	// unstreamed is how long to wait before asking a runtime without events again:
	// a new version may have some.
	unstreamed  = 5 * time.Minute
	heardBuffer = 100
	// maxUID bounds the UIDs that are kept of events: no directory could be named by a
	// longer one. An event may be as long as any answer of the runtime's.
	maxUID = 255
)

var reconnect = backoff.Policy{Initial: 500 * time.Millisecond, Max: 30 * time.Second, Jitter: 0.2}

// Streaming tells whether events arrive, so that relists are rare.
func (g *Generator) Streaming() bool { return g.streaming.Load() }

// listen keeps a stream open until ctx ends.
func (g *Generator) listen(ctx context.Context) {
	none := false // it was said that there are no events
	for failures := 0; ctx.Err() == nil; {
		opened := g.clock.Now()
		received, err := g.receive(ctx)
		if ctx.Err() != nil {
			return
		}
		g.streaming.Store(false)
		g.RelistSoon()
		g.stream.Failed()
		if received {
			none = false
		}
		if g.clock.Since(opened) >= reconnect.Max { // an event alone is no proof that it lasts
			failures = 0
		}
		failures++
		wait := reconnect.Delay(failures)
		switch {
		case cri.IsUnimplemented(err):
			wait = unstreamed
			if !none {
				g.logger.Info("container runtime has no events; it is listed instead")
			}
			none = true
		case failures == 1:
			g.logger.Warn("events of the container runtime broke off; it is listed until they come again", zap.Error(err))
		}
		_ = backoff.Sleep(ctx, g.clock, wait)
	}
}

// receive passes events on until the stream breaks. Only the first event proves
// that a stream is open: until then the runtime is listed as if there were none.
func (g *Generator) receive(ctx context.Context) (received bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := g.stream.Open(ctx)
	if err != nil {
		return false, err
	}
	for {
		event, err := stream.Recv()
		if err != nil {
			return received, fmt.Errorf("events of the container runtime: %w", err)
		}
		g.stream.Received(g.clock.Since(time.Unix(0, event.GetCreatedAt())))
		pod := types.UID("")
		if uid := event.GetPodSandboxStatus().GetMetadata().GetUid(); received && len(uid) <= maxUID {
			pod = types.UID(uid)
		}
		if !received { // what was missed before is found by one relist
			received = true
			g.stream.Connected()
			g.streaming.Store(true)
		}
		select {
		case g.heard <- pod:
		case <-ctx.Done():
			return received, ctx.Err()
		}
	}
}

// hear inspects the pod that an event is about, together with all others whose
// events have come by now. It reports whether that was all: a pod that the runtime did not
// name, or did not answer about, is found by the next relist. It is not found by one at once:
// a runtime that never names any would be listed all the time.
func (g *Generator) hear(ctx context.Context, first types.UID) bool {
	pods := sets.New(receiveAll(first, g.heard)...)
	unnamed := pods.Has("")
	pods.Delete("")
	g.single(ctx, pods)
	return !unnamed && !g.hasUnanswered()
}

// receiveAll returns the first event and those that have arrived since, as far as there
// is room.
func receiveAll[T any](first T, more <-chan T) []T {
	all := []T{first}
	for range heardBuffer {
		select {
		case next := <-more:
			all = append(all, next)
		default:
			return all
		}
	}
	return all
}

// single does for some pods what a relist does for all.
func (g *Generator) single(ctx context.Context, pods sets.Set[types.UID]) {
	asking, cancel := context.WithTimeout(ctx, relistTimeout)
	defer cancel()
	type answer struct{ before, now *runtimestate.PodStatus }
	found, failed := make(chan answer, len(pods)), make(chan types.UID, len(pods))
	var group errgroup.Group
	group.SetLimit(inspectors)
	for uid := range pods {
		name, namespace := "", "" // the runtime tells them
		if known := g.known[uid]; known != nil {
			name, namespace = known.Name, known.Namespace
		}
		group.Go(func() error {
			asked := g.clock.Now()
			status, err := g.runtime.PodStatus(asking, uid, name, namespace)
			before, _ := g.cache.Get(uid)
			if !g.cache.Set(uid, status, err, asked) {
				before = nil // its worker wrote a newer one meanwhile, which wakes nobody
			}
			if err != nil {
				g.logger.Warn("pod status cannot be had from the runtime", zap.String("uid", string(uid)), zap.Error(err))
				failed <- uid
				return nil
			}
			found <- answer{before, status}
			return nil
		})
	}
	_ = group.Wait() // errors are in the cache
	close(found)
	close(failed)
	for uid := range failed {
		g.reinspect.Insert(uid) // by the next relist
	}
	for a := range found {
		pod := a.now.RunningPod(g.runtime.Name())
		events := compare(pod.UID, g.known[pod.UID], pod)
		if len(events) == 0 && a.before != nil {
			// Known here, but what its worker wrote meanwhile was older.
			events = compare(pod.UID, a.before.RunningPod(g.runtime.Name()), pod)
		}
		if g.known[pod.UID] = pod; len(pod.Sandboxes)+len(pod.Containers) == 0 {
			delete(g.known, pod.UID)
		}
		for _, event := range events {
			g.send(ctx, event)
		}
	}
}
