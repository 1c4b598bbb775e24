package pleg

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/runtimestate"
)

// EventType says what happened to a container or a sandbox.
type EventType string

const (
	ContainerStarted EventType = "ContainerStarted"
	ContainerDied    EventType = "ContainerDied"
	ContainerRemoved EventType = "ContainerRemoved"
	ContainerChanged EventType = "ContainerChanged" // its state is not known
)

// Event is one thing that happened to a pod in the runtime.
type Event struct {
	UID         types.UID
	Type        EventType
	ContainerID string
}

// Runtime is what the generator asks of the pod runtime.
type Runtime interface {
	Pods(ctx context.Context) ([]*runtimestate.RunningPod, error)
	PodStatus(ctx context.Context, uid types.UID, name, namespace string) (*runtimestate.PodStatus, error)
	Name() string
}

// Cache receives what the relists find, and has what pod workers did themselves.
type Cache interface {
	Get(uid types.UID) (*runtimestate.PodStatus, error)
	Set(uid types.UID, status *runtimestate.PodStatus, err error, at time.Time) bool
	Complete(at time.Time, pods iter.Seq[types.UID])
}

// Exits reports the ends of containers' processes.
type Exits interface {
	// Watch calls Ended when one of the running containers ends, and forgets all
	// others.
	Watch(ctx context.Context, running map[string]bool)
	// Wait returns when Watch's ctx has ended and all waiting is over.
	Wait()
}

const (
	// patience is how far apart relists may be that no end is noticed too late.
	patience = 100 * time.Millisecond
	// unhealthyAfter is how long there may be no relist until the generator reports that.
	unhealthyAfter = 3 * time.Minute
	relistTimeout  = 2 * time.Minute
	inspectors     = 8
	eventBuffer    = 1000
)

// Generator is safe for concurrent use.
type Generator struct {
	runtime Runtime
	cache   Cache
	clock   clock.Clock
	logger  *zap.Logger
	observe func(took, interval time.Duration)

	events     chan Event
	relistSoon chan struct{}
	ended      chan string

	stream    *Stream // nil without events of the runtime
	streaming atomic.Bool
	heard     chan types.UID // of the pods that something happened to; empty if the runtime did not say which

	exits Exits // nil if ends are not watched

	// Only Run's goroutine touches these.
	known     map[types.UID]*runtimestate.RunningPod
	reinspect sets.Set[types.UID] // pods whose status could not be had

	mu     sync.Mutex
	last   time.Time
	behind bool                // the sync loop is, and is waited for
	caught time.Time           // when it had caught up
	failed error               // why the runtime could not be listed the last time; nil if it could
	asked  sets.Set[types.UID] // pods to inspect in the next relist
}

// Options are a Generator's parameters.
type Options struct {
	Runtime Runtime
	Cache   Cache
	Clock   clock.Clock
	Logger  *zap.Logger
	// Observe is called after each relist; it may be nil.
	Observe func(took, interval time.Duration)
	// Stream, if not nil, has the runtime's events listened to where there are any.
	Stream *Stream
	// Exits, if not nil, has ends of containers' processes seen though relists are rare.
	Exits Exits
}

// New returns a Generator that does nothing before Run.
func New(o Options) *Generator {
	if o.Observe == nil {
		o.Observe = func(time.Duration, time.Duration) {}
	}
	return &Generator{
		runtime: o.Runtime, cache: o.Cache, clock: o.Clock, logger: o.Logger, observe: o.Observe, stream: o.Stream, exits: o.Exits,
		events: make(chan Event, eventBuffer), relistSoon: make(chan struct{}, 1),
		ended: make(chan string, heardBuffer), heard: make(chan types.UID, heardBuffer),
		known: map[types.UID]*runtimestate.RunningPod{}, reinspect: sets.Set[types.UID]{},
		last: o.Clock.Now(), asked: sets.Set[types.UID]{},
	}
}

// Events is where the sync loop receives what happened.
func (g *Generator) Events() <-chan Event { return g.events }

// RelistSoon asks for relists at the fastest interval from now on.
func (g *Generator) RelistSoon() {
	select {
	case g.relistSoon <- struct{}{}:
	default: // one is pending already
	}
}

// ContainerEnded makes the generator look at the pod of an ended container at once.
func (g *Generator) ContainerEnded(container string) {
	select {
	case g.ended <- container:
	default: // so many end that they are listed
		g.RelistSoon()
	}
}

// RequestReinspect makes the next relist, soon, ask for the pod's full status even if it
// sees no change: a worker that writes the pod's status into the cache piece by
// piece may have overwritten what a relist found meanwhile with something older.
func (g *Generator) RequestReinspect(uid types.UID) {
	g.mu.Lock()
	g.asked.Insert(uid)
	g.mu.Unlock()
	g.RelistSoon()
}

func (g *Generator) takeAsked() sets.Set[types.UID] {
	g.mu.Lock()
	defer g.mu.Unlock()
	asked := g.asked
	g.asked = sets.Set[types.UID]{}
	return asked
}

// Healthy returns an error if the runtime could not be listed for too long. The time in which
// the sync loop is waited for does not count: it takes no events while this is an error, and
// both would wait for each other.
func (g *Generator) Healthy() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if silent := min(g.clock.Since(g.last), g.clock.Since(g.caught)); silent > unhealthyAfter && !g.behind {
		return fmt.Errorf("PLEG was last seen active %v ago; threshold is %v", silent.Round(time.Second), unhealthyAfter)
	}
	return nil
}

// LastRelist is when the runtime was listed last.
func (g *Generator) LastRelist() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.last
}

// Run relists, and listens, until ctx ends.
func (g *Generator) Run(ctx context.Context) error {
	if g.stream != nil {
		var listener sync.WaitGroup
		defer listener.Wait()
		listener.Go(func() { g.listen(ctx) })
	}
	if g.exits != nil {
		defer g.exits.Wait()
	}
	next := newRelistTimer(g.clock)
	defer next.timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-g.relistSoon:
			if g.Streaming() {
				g.single(ctx, g.takeAsked())
			}
			if !g.Streaming() || g.hasUnanswered() {
				next.soon()
			}
			continue
		case id := <-g.ended:
			if !g.Streaming() && !g.hearEnded(ctx, id) { // else the runtime tells itself
				next.soon()
			}
			continue
		case pod := <-g.heard:
			if !g.hear(ctx, pod) {
				next.soon()
			}
			continue
		case <-next.timer.C():
		}
		start := g.clock.Now()
		next.relisted(g.relist(ctx, next.interval), g.clock.Since(start))
		if g.Streaming() && !g.hasUnanswered() {
			next.in(streamed)
		} else if next.rest() > patience {
			g.watchExits(ctx)
		}
	}
}

// hasUnanswered tells whether the runtime left a question unanswered, which the next relist
// repeats.
func (g *Generator) hasUnanswered() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failed != nil || len(g.reinspect) > 0
}

// watchExits bridges the time to the next relist.
func (g *Generator) watchExits(ctx context.Context) {
	if g.exits == nil {
		return
	}
	running := map[string]bool{}
	for _, pod := range g.known {
		for _, c := range pod.Containers {
			if c.State == runtimestate.StateRunning {
				running[c.ID.ID] = true
			}
		}
	}
	g.exits.Watch(ctx, running)
}

// hearEnded looks at the pods of an ended container and of all others that have
// ended by now. It reports whether it found all of them, and the results.
func (g *Generator) hearEnded(ctx context.Context, first string) bool {
	ended := sets.New(receiveAll(first, g.ended)...)
	pods := sets.Set[types.UID]{}
	for uid, pod := range g.known {
		for _, c := range pod.Containers {
			if ended.Has(c.ID.ID) {
				ended.Delete(c.ID.ID)
				pods.Insert(uid)
			}
		}
	}
	g.single(ctx, pods)
	return len(ended) == 0 && len(g.reinspect) == 0
}

// relist reports whether anything happened since the last one.
func (g *Generator) relist(ctx context.Context, interval time.Duration) bool {
	asking, cancel := context.WithTimeout(ctx, relistTimeout)
	defer cancel()
	asked := g.takeAsked()
	at := g.clock.Now()
	pods, err := g.runtime.Pods(asking)
	g.observe(g.clock.Since(at), interval)
	g.note(at, err)
	if err != nil {
		g.reinspect = g.reinspect.Union(asked)
		return false
	}
	current := make(map[types.UID]*runtimestate.RunningPod, len(pods))
	for _, pod := range pods {
		current[pod.UID] = pod
	}
	changes := g.compare(current, asked)
	g.inspect(asking, changes, current)
	g.known = current
	g.cache.Complete(at, maps.Keys(current))
	for _, change := range changes {
		for _, event := range change.events {
			g.send(ctx, event)
		}
	}
	return len(changes) > 0
}

func (g *Generator) note(at time.Time, err error) {
	g.mu.Lock()
	before := g.failed
	g.failed = err
	if err == nil {
		g.last = at
	}
	g.mu.Unlock()
	switch {
	case err != nil && before == nil:
		g.logger.Warn("container runtime cannot be listed", zap.Error(err))
	case err == nil && before != nil:
		g.logger.Info("container runtime can be listed again")
	}
}

// compare returns the pods that changed, or whose status is still owed.
func (g *Generator) compare(current map[types.UID]*runtimestate.RunningPod, asked sets.Set[types.UID]) map[types.UID]*change {
	changes := map[types.UID]*change{}
	for uid, pod := range current {
		events := compare(uid, g.known[uid], pod)
		if len(events) > 0 {
			if status, err := g.cache.Get(uid); err == nil {
				events = withoutKnownStarts(events, status)
			}
		}
		if len(events) == 0 && (asked.Has(uid) || g.reinspect.Has(uid)) {
			events = []Event{{UID: uid, Type: ContainerChanged}}
		}
		if len(events) > 0 {
			changes[uid] = &change{events: events}
		}
	}
	for uid, pod := range g.known {
		if _, ok := current[uid]; !ok {
			changes[uid] = &change{events: compare(uid, pod, nil)}
		}
	}
	return changes
}

// inspect asks for the full status of the pods that changed, a few at a time.
func (g *Generator) inspect(ctx context.Context, changes map[types.UID]*change, current map[types.UID]*runtimestate.RunningPod) {
	var group errgroup.Group
	group.SetLimit(inspectors)
	for uid, c := range changes {
		pod, ok := current[uid]
		if !ok {
			continue // the cache forgets it when the relist is complete
		}
		group.Go(func() error {
			asked := g.clock.Now()
			var status *runtimestate.PodStatus
			status, c.err = g.runtime.PodStatus(ctx, uid, pod.Name, pod.Namespace)
			g.cache.Set(uid, status, c.err, asked)
			return nil
		})
	}
	_ = group.Wait() // each error is in its change and in the cache
	clear(g.reinspect)
	for uid, c := range changes {
		if c.err != nil {
			g.reinspect.Insert(uid)
			g.logger.Warn("pod status cannot be had from the runtime", zap.String("uid", string(uid)), zap.Error(c.err))
		}
	}
}

// send waits for the sync loop if it is behind, until Run's ctx ends: an event must not be lost,
// also if the runtime took all of its time, and relisting faster than events are handled helps
// nobody.
func (g *Generator) send(ctx context.Context, event Event) {
	select {
	case g.events <- event:
		return
	default:
	}
	g.setBehind(true)
	defer g.setBehind(false)
	select {
	case g.events <- event:
	case <-ctx.Done():
	}
}

func (g *Generator) setBehind(behind bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.behind, g.caught = behind, g.clock.Now()
}
