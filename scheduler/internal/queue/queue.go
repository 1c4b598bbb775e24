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
	// under the queue's lock and must not call back, and so are PreEnqueue plugins.
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

type part int

const (
	nowhere part = iota
	inActive
	inBackoff
	inUnschedulable
	inGated
	inFlight
)

// Events that happen to no object, and the first of every pod, by their names in metrics.
const (
	unscheduledPodAdd      = "UnscheduledPodAdd"
	scheduleAttemptFailure = "ScheduleAttemptFailure"
	unschedulableTimeout   = "UnschedulableTimeout"
)

var partNames = [...]string{"", "active", "backoff", "unschedulable", "gated", ""}

// item is one pod in the queue.
type item struct {
	framework.QueuedPodInfo
	profile *framework.Profile

	part               part
	index              int                 // in a heap
	element            *list.Element       // in a list
	waits              *unschedulableGroup // whose list that is, of an unschedulable or gated pod
	plugins            []string            // that rejected it last
	pending            []string            // those of them that only wait for something
	refusals           int                 // by plugins
	failures           int                 // by errors, in a row
	errored            bool                // the last failure was an error
	ready              time.Time           // end of the back-off
	unschedulableSince time.Time           // entered unschedulable, or was found gated

	// While in flight:
	since  uint64        // the first event the attempt did not see
	update *core.Pod     // came meanwhile
	left   bool          // deleted or bound meanwhile
	leaves chan struct{} // closed then, if somebody asked
}

// Queue is safe for concurrent use; Pop is for one caller.
type Queue struct {
	options         Options
	queueingHintMap map[string]map[string][]framework.ClusterEventWithHint // by profile and plugin

	mu                sync.Mutex
	items             map[types.UID]*item
	activeQ           itemHeap
	backoffQ          itemHeap                       // may be popped early
	errorBackoffQ     itemHeap                       // must wait its time
	unschedulablePods map[string]*unschedulableGroup // unschedulable, by the plugins that rejected them
	gatedPods         map[string]*unschedulableGroup // gated, likewise
	hints             int                            // that were asked, since the start
	looked            int                            // pods that events have had looked at, since the start
	inFlight          *list.List                     // in flight, in the order of their pops
	inFlightEvents    eventLog

	wake  chan struct{} // something can be popped
	rearm chan struct{} // a deadline may have come nearer
}

// New returns an empty queue.
func New(options Options) *Queue {
	q := &Queue{
		options: options, queueingHintMap: map[string]map[string][]framework.ClusterEventWithHint{},
		items: map[types.UID]*item{}, inFlight: list.New(),
		unschedulablePods: map[string]*unschedulableGroup{}, gatedPods: map[string]*unschedulableGroup{},
		wake: make(chan struct{}, 1), rearm: make(chan struct{}, 1),
	}
	var less func(a, b *framework.QueuedPodInfo) bool
	for name, profile := range options.Profiles {
		q.queueingHintMap[name] = profile.QueueingHints()
		less = profile.QueueSort.Less
	}
	byReady := func(a, b *item) bool { return a.ready.Before(b.ready) }
	q.activeQ.less = func(a, b *item) bool { return less(&a.QueuedPodInfo, &b.QueuedPodInfo) }
	q.backoffQ.less, q.errorBackoffQ.less = byReady, byReady
	return q
}

// Responsible reports whether pod asks for one of the profiles.
func (q *Queue) Responsible(pod *core.Pod) bool {
	_, ours := q.options.Profiles[pod.Spec.SchedulerName]
	return ours
}

// Add adds a pod that has no node, or updates it if it is there.
func (q *Queue) Add(ctx context.Context, pod *core.Pod) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if it, known := q.items[pod.UID]; known {
		q.update(ctx, it, pod)
		return
	}
	if !q.Responsible(pod) {
		return
	}
	it := &item{profile: q.options.Profiles[pod.Spec.SchedulerName], QueuedPodInfo: framework.QueuedPodInfo{
		PodInfo: framework.NewPodInfo(pod), Timestamp: q.options.Clock.Now(),
	}}
	q.items[pod.UID] = it
	if q.passes(ctx, it, unscheduledPodAdd) {
		q.activate(it, unscheduledPodAdd)
	}
}

func (q *Queue) activate(it *item, event string) {
	it.part = inActive
	q.activeQ.add(it)
	q.count(inActive, event)
	signal(q.wake)
}

func (q *Queue) update(ctx context.Context, it *item, pod *core.Pod) {
	event := framework.ClusterEvent{Resource: framework.PodEvent, OldPod: it.Pod, NewPod: pod}
	if it.part == inFlight {
		if it.update != nil {
			event.OldPod = it.update
		}
		it.update = pod
		if event.ActionType = framework.PodActions(event.OldPod, pod); event.ActionType != 0 {
			q.inFlightEvents.add(event)
		}
		return
	}
	event.ActionType = framework.PodActions(it.Pod, pod)
	it.PodInfo = framework.NewPodInfo(pod)
	switch it.part {
	case inActive:
		q.activeQ.fix(it)
	case inGated:
		if event.ActionType != 0 && q.isEventRelevant(it, event) != queueSkip {
			q.reconsider(ctx, it, event.Label())
		}
	case inUnschedulable:
		if event.ActionType != 0 {
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
	if it.part == inFlight {
		it.left = true // the cycle still holds it; it ends there
		if it.leaves != nil {
			close(it.leaves)
		}
		return
	}
	q.take(it)
}

// Pop waits for the next pod and puts it in flight. The caller must end every
// flight with Done or AddUnschedulable. The error is ctx's.
func (q *Queue) Pop(ctx context.Context) (*framework.QueuedPodInfo, error) {
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

func (q *Queue) tryPop() *framework.QueuedPodInfo {
	q.mu.Lock()
	defer q.mu.Unlock()
	var it *item
	switch {
	case q.activeQ.Len() > 0:
		it = q.activeQ.take()
	case q.backoffQ.Len() > 0:
		// The back-off exists to let others go first, and there are none.
		it = q.backoffQ.take()
		q.count(inActive, "PopFromBackoffQ")
	default:
		return nil
	}
	it.part = inFlight
	it.Attempts++
	it.since = q.inFlightEvents.next()
	it.update, it.left, it.leaves = nil, false, nil
	it.element = q.inFlight.PushBack(it)
	// Each attempt has its own stamps: the one that binds the pod sends its own.
	it.Stamps = &relay.Stamps{}
	it.Stamps.Stamp(relay.SchedulerQueued, it.Added)
	it.Stamps.Stamp(relay.SchedulerPopped, q.options.Clock.Now())
	popped := it.QueuedPodInfo
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
	case it.part == inFlight:
		return "in flight", it.plugins
	}
	return partNames[it.part], it.plugins
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

// AddUnschedulable ends a flight without a node.
func (q *Queue) AddUnschedulable(uid types.UID, failure Failure) {
	q.mu.Lock()
	defer q.mu.Unlock()
	it := q.landing(uid)
	if it == nil {
		return
	}
	if it.update != nil {
		it.PodInfo, it.update = framework.NewPodInfo(it.update), nil
	}
	missed, complete := q.inFlightEvents.since(it.since)
	it.plugins, it.pending, it.errored = failure.Plugins, failure.Pending, failure.Error
	strategy := queueSkip
	if !complete || failure.Error {
		strategy = queueAfterBackoff
	}
	for i := 0; i < len(missed) && strategy != queueImmediately; i++ {
		strategy = max(strategy, q.isEventRelevant(it, missed[i]))
	}
	q.endFlight(it)
	if it.left {
		return
	}
	now := q.options.Clock.Now()
	it.Flushed = false
	it.Timestamp = now
	it.ready = now.Add(q.backoffAfter(it))
	q.requeue(it, strategy, scheduleAttemptFailure)
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
	if it, known := q.items[uid]; known && it.part == inFlight {
		return it
	}
	for e := q.inFlight.Front(); e != nil; e = e.Next() {
		if it := e.Value.(*item); it.Pod.UID == uid {
			return it
		}
	}
	return nil
}

func (q *Queue) endFlight(it *item) {
	q.inFlight.Remove(it.element)
	it.element, it.part = nil, nowhere
	oldest := q.inFlightEvents.next()
	if e := q.inFlight.Front(); e != nil {
		oldest = e.Value.(*item).since
	}
	q.inFlightEvents.forget(oldest)
}
