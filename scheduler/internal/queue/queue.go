package queue

import (
	"container/list"
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/relay"
	"kctl/scheduler/framework"
)

// Options of a Queue.
type Options struct {
	// Profiles by scheduler name. They share one QueueSort.
	Profiles map[string]*framework.Profile
	Clock    clock.Clock
	// Backoff is how long a pod waits after its attempts failed in a row.
	Backoff backoff.Policy
	// FlushAfter moves pods that waited this long without a relevant event.
	FlushAfter time.Duration
	// Gated is called for pods that PreEnqueue keeps out; may be nil. It is called
	// under the queue's lock and must not call back.
	Gated func(pod *core.Pod, status *framework.Status)
	// Incoming counts pods that enter a part of the queue; may be nil.
	Incoming func(part, event string)
	// Handled is called with the time that it took to check the pods that an event
	// may help, and Hinted with that of a sample of the plugins' hints; both may
	// be nil.
	Handled func(event string, took time.Duration)
	Hinted  func(plugin, event string, helps bool, took time.Duration)
}

// measuredHints says that one in so many hints is measured: they are quick, and many.
const measuredHints = 100

// DefaultBackoff is upstream's wait of pods after failed attempts.
var DefaultBackoff = backoff.Policy{Initial: time.Second, Max: 10 * time.Second}

// DefaultFlushAfter is upstream's limit on how long a pod can go without an attempt.
const DefaultFlushAfter = 5 * time.Minute

type place int

const (
	nowhere place = iota
	active
	backingOff
	unschedulable
	gated
	inFlight
)

var placeNames = [...]string{"", "active", "backoff", "unschedulable", "gated", ""}

// item is one pod in the queue.
type item struct {
	framework.QueuedPod
	profile *framework.Profile

	place    place
	index    int           // in a heap
	element  *list.Element // in a list
	waits    *waiting      // whose list that is, of an unschedulable pod
	plugins  []string      // that rejected it last
	pending  []string      // those of them that only wait for something
	refusals int           // by plugins
	failures int           // by errors, in a row
	errored  bool          // the last failure was an error
	ready    time.Time     // end of the back-off
	parkedAt time.Time     // entered unschedulable

	// While in flight:
	since  uint64        // the first event the attempt did not see
	update *core.Pod     // came meanwhile
	left   bool          // deleted or bound meanwhile
	leaves chan struct{} // closed then, if somebody asked
}

// Queue is safe for concurrent use; Pop is for one caller.
type Queue struct {
	options   Options
	interests map[string]map[string][]framework.EventInterest // by profile and plugin

	mu      sync.Mutex
	items   map[types.UID]*item
	active  itemHeap
	backoff itemHeap            // may be popped early
	errored itemHeap            // must wait its time
	parked  map[string]*waiting // unschedulable, by the plugins that rejected them
	gated   int
	hints   int        // that were asked, since the start
	looked  int        // pods that events have had looked at, since the start
	flying  *list.List // in flight, in the order of their pops
	journal journal

	wake  chan struct{} // something can be popped
	rearm chan struct{} // a deadline may have come nearer
}

// New returns an empty queue.
func New(options Options) *Queue {
	q := &Queue{
		options: options, interests: map[string]map[string][]framework.EventInterest{},
		items: map[types.UID]*item{}, parked: map[string]*waiting{}, flying: list.New(),
		wake: make(chan struct{}, 1), rearm: make(chan struct{}, 1),
	}
	var less func(a, b *framework.QueuedPod) bool
	for name, profile := range options.Profiles {
		q.interests[name] = profile.Interests()
		less = profile.QueueSort.Less
	}
	byReady := func(a, b *item) bool { return a.ready.Before(b.ready) }
	q.active.less = func(a, b *item) bool { return less(&a.QueuedPod, &b.QueuedPod) }
	q.backoff.less, q.errored.less = byReady, byReady
	return q
}

// Add adds a pod that has no node, or updates it if it is there.
func (q *Queue) Add(ctx context.Context, pod *core.Pod) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if it, known := q.items[pod.UID]; known {
		q.update(ctx, it, pod)
		return
	}
	profile, ours := q.options.Profiles[pod.Spec.SchedulerName]
	if !ours {
		return
	}
	it := &item{profile: profile, QueuedPod: framework.QueuedPod{
		PodInfo: framework.NewPodInfo(pod), Timestamp: q.options.Clock.Now(),
	}}
	q.items[pod.UID] = it
	q.admit(ctx, it, "UnscheduledPodAdd")
}

// admit puts a pod that is in no part of the queue into the active queue, or gates it.
func (q *Queue) admit(ctx context.Context, it *item, event string) {
	status := it.profile.RunPreEnqueue(ctx, it.PodInfo)
	if status.IsSuccess() {
		it.Added = q.options.Clock.Now()
		q.activate(it, event)
		return
	}
	it.place = gated
	it.plugins = []string{status.Plugin()}
	q.gated++
	q.count(gated, event)
	if q.options.Gated != nil {
		q.options.Gated(it.Pod, status)
	}
}

func (q *Queue) activate(it *item, event string) {
	it.place = active
	q.active.add(it)
	q.count(active, event)
	q.signal(q.wake)
}

func (q *Queue) update(ctx context.Context, it *item, pod *core.Pod) {
	event := framework.Event{Resource: framework.PodEvent, OldPod: it.Pod, NewPod: pod}
	if it.place == inFlight {
		if it.update != nil {
			event.OldPod = it.update
		}
		it.update = pod
		if event.Action = framework.PodActions(event.OldPod, pod); event.Action != 0 {
			q.journal.add(event)
		}
		return
	}
	event.Action = framework.PodActions(it.Pod, pod)
	it.PodInfo = framework.NewPodInfo(pod)
	switch it.place {
	case active:
		q.active.fix(it)
	case gated:
		if event.Action != 0 {
			q.take(it)
			q.admit(ctx, it, event.Label())
		}
	case unschedulable:
		if event.Action != 0 {
			q.wakeBy(it, event)
		}
	}
}

// Delete forgets a pod that is gone or has a node.
func (q *Queue) Delete(uid types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	it, known := q.items[uid]
	if !known {
		return
	}
	delete(q.items, uid)
	if it.place == inFlight {
		it.left = true // the cycle still holds it; it ends there
		if it.leaves != nil {
			close(it.leaves)
		}
		return
	}
	q.take(it)
}

// Pop waits for the next pod and puts it in flight. The caller must end every
// flight with Done or Failed. The error is ctx's.
func (q *Queue) Pop(ctx context.Context) (*framework.QueuedPod, error) {
	for {
		if pod := q.tryPop(); pod != nil {
			return pod, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-q.wake:
		}
	}
}

func (q *Queue) tryPop() *framework.QueuedPod {
	q.mu.Lock()
	defer q.mu.Unlock()
	var it *item
	switch {
	case q.active.Len() > 0:
		it = q.active.take()
	case q.backoff.Len() > 0:
		// The back-off exists to let others go first, and there are none.
		it = q.backoff.take()
		q.count(active, "PopFromBackoffQ")
	default:
		return nil
	}
	it.place = inFlight
	it.Attempts++
	it.since = q.journal.next()
	it.update, it.left, it.leaves = nil, false, nil
	it.element = q.flying.PushBack(it)
	// Each attempt has its own stamps: the one that binds the pod sends its own.
	it.Relay = &relay.Recorder{}
	it.Relay.Stamp(relay.SchedulerQueued, it.Added)
	it.Relay.Stamp(relay.SchedulerPopped, q.options.Clock.Now())
	popped := it.QueuedPod
	return &popped
}

// Current returns the newest version of a pod in flight; false if it was
// deleted, or has a node by now.
func (q *Queue) Current(uid types.UID) (*core.Pod, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	it, known := q.items[uid]
	if !known {
		return nil, false
	}
	if it.update != nil {
		return it.update, true
	}
	return it.Pod, true
}

// Left is closed when the API shows that a pod in flight is deleted or has a node.
func (q *Queue) Left(uid types.UID) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	it, known := q.items[uid]
	if !known {
		return closed
	}
	if it.leaves == nil {
		it.leaves = make(chan struct{})
	}
	return it.leaves
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Where tells in which part of the queue a pod is, and which plugins rejected
// it last; empty if it is not in the queue, "in flight" while it is attempted or
// bound.
func (q *Queue) Where(uid types.UID) (part string, rejectedBy []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	it, known := q.items[uid]
	switch {
	case !known:
		return "", nil
	case it.place == inFlight:
		return "in flight", it.plugins
	}
	return placeNames[it.place], it.plugins
}

// Done ends a flight: the pod is bound or needs no node any more.
func (q *Queue) Done(uid types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	it := q.landing(uid)
	if it == nil {
		return
	}
	q.endFlight(it)
	if !it.left {
		delete(q.items, uid)
	}
}

// Failure says why an attempt came to nothing.
type Failure struct {
	// Plugins rejected the pod; their events bring it back. Those that are Pending
	// found no fault with it: their events bring it back at once.
	Plugins []string
	Pending []string
	// Error is set if it was not a rejection: then the pod is tried again after
	// its back-off in any case.
	Error bool
}

// Failed ends a flight without a node.
func (q *Queue) Failed(uid types.UID, failure Failure) {
	q.mu.Lock()
	defer q.mu.Unlock()
	it := q.landing(uid)
	if it == nil {
		return
	}
	if it.update != nil {
		it.PodInfo, it.update = framework.NewPodInfo(it.update), nil
	}
	missed, complete := q.journal.since(it.since)
	it.plugins, it.pending, it.errored = failure.Plugins, failure.Pending, failure.Error
	help := none
	if !complete || failure.Error {
		help = afterBackoff
	}
	for i := 0; i < len(missed) && help != atOnce; i++ {
		help = max(help, q.helps(it, missed[i]))
	}
	q.endFlight(it)
	if it.left {
		return
	}
	now := q.options.Clock.Now()
	it.Flushed = false
	it.Timestamp = now
	it.ready = now.Add(q.backoffAfter(it))
	q.requeue(it, help, "ScheduleAttemptFailure")
}

// backoffAfter counts a failure, and returns how long the pod waits after it.
// As in upstream, rejections and errors are counted apart: rejections by
// plugins do not lengthen the wait after an error.
func (q *Queue) backoffAfter(it *item) time.Duration {
	if it.errored {
		it.failures++
		return q.options.Backoff.Delay(it.failures)
	}
	it.refusals++
	it.failures = 0
	return q.options.Backoff.Delay(it.refusals)
}

// landing finds a pod in flight by its UID; the flights are few (bounded by
// the bindings under way).
func (q *Queue) landing(uid types.UID) *item {
	if it, known := q.items[uid]; known && it.place == inFlight {
		return it
	}
	for e := q.flying.Front(); e != nil; e = e.Next() {
		if it := e.Value.(*item); it.Pod.UID == uid {
			return it
		}
	}
	return nil
}

func (q *Queue) endFlight(it *item) {
	q.flying.Remove(it.element)
	it.element, it.place = nil, nowhere
	oldest := q.journal.next()
	if e := q.flying.Front(); e != nil {
		oldest = e.Value.(*item).since
	}
	q.journal.forget(oldest)
}
