package queue

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kctl/scheduler/framework"
)

// MoveAllToActiveOrBackoffQueue tells the queue about an event in the cluster: pods
// that it may help are brought back.
func (q *Queue) MoveAllToActiveOrBackoffQueue(event framework.ClusterEvent) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.options.Handled != nil {
		began := q.options.Clock.Now()
		defer func() { q.options.Handled(event.Label(), q.options.Clock.Since(began)) }()
	}
	if q.inFlight.Len() > 0 {
		q.inFlightEvents.add(event)
	}
	for _, w := range q.unschedulablePods {
		if !q.concerns(w, event) {
			continue
		}
		for e := w.pods.Front(); e != nil; {
			next := e.Next()
			q.looked++
			q.wakeBy(e.Value.(*item), event)
			e = next
		}
	}
	q.wakeGated(event)
}

// Activate brings back an unschedulable pod that waited for room that it will not
// get; not before its back-off is over.
func (q *Queue) Activate(uid types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if it, known := q.items[uid]; known && it.part == inUnschedulable {
		q.take(it)
		q.requeue(it, queueAfterBackoff, framework.ClusterEvent{Resource: framework.AssignedPodEvent, ActionType: framework.Delete}.Label())
	}
}

// queueingStrategy is where an event brings a pod that was rejected.
type queueingStrategy int

const (
	queueSkip queueingStrategy = iota
	queueAfterBackoff
	queueImmediately
)

// wakeBy brings an unschedulable pod back if event helps it.
func (q *Queue) wakeBy(it *item, event framework.ClusterEvent) {
	if strategy := q.isEventRelevant(it, event); strategy != queueSkip {
		q.take(it)
		q.requeue(it, strategy, event.Label())
	}
}

// isEventRelevant reports whether event may make one of the plugins that rejected the
// pod change its mind.
func (q *Queue) isEventRelevant(it *item, event framework.ClusterEvent) queueingStrategy {
	if event.Resource == framework.PodEvent && event.NewPod.UID != it.Pod.UID {
		return queueSkip
	}
	if event.ActionType == framework.Delete && event.OldPod != nil && event.OldPod.UID == it.Pod.UID {
		return queueSkip // room freed by its own failed binding does not help it
	}
	if event.Nominated && it.Priority > framework.Priority(event.OldPod) {
		return queueSkip
	}
	if len(it.plugins) == 0 {
		return queueAfterBackoff
	}
	strategy := queueSkip
	for _, plugin := range it.plugins {
		if !q.interested(it, plugin, event) {
			continue
		}
		if slices.Contains(it.pending, plugin) {
			return queueImmediately
		}
		strategy = queueAfterBackoff
		if len(it.pending) == 0 {
			break
		}
	}
	return strategy
}

// interested reports whether a plugin that rejected the pod waits for event.
func (q *Queue) interested(it *item, plugin string, event framework.ClusterEvent) bool {
	return q.registered(it.profile.SchedulerName, plugin, func(i framework.ClusterEventWithHint) bool {
		return i.IsAbout(event) && (i.QueueingHintFn == nil || q.hint(i, it, plugin, event))
	})
}

// registered reports whether a plugin has registered an event that is meant. One that has not
// said for which events it waits, waits for all.
func (q *Queue) registered(profile, plugin string, meant func(framework.ClusterEventWithHint) bool) bool {
	events := q.queueingHintMap[profile][plugin]
	return events == nil || slices.ContainsFunc(events, meant)
}

// hint asks what a plugin registered for the event.
func (q *Queue) hint(registered framework.ClusterEventWithHint, it *item, plugin string, event framework.ClusterEvent) bool {
	if q.hints++; q.options.Hinted == nil || q.hints%measuredHints != 0 {
		return registered.QueueingHintFn(it.PodInfo, event)
	}
	began := q.options.Clock.Now()
	helps := registered.QueueingHintFn(it.PodInfo, event)
	q.options.Hinted(plugin, event.Label(), helps, q.options.Clock.Since(began))
	return helps
}

// requeue puts a pod where it belongs, as the event that helped it says: into the
// active queue, into the back-off if that is not over, or among the
// unschedulable.
func (q *Queue) requeue(it *item, strategy queueingStrategy, event string) {
	if strategy == queueSkip {
		q.addUnschedulable(it)
	} else if q.passes(context.Background(), it, event) {
		q.place(it, strategy, event)
	}
}

// place puts a pod that may be attempted into the active queue, or into the back-off.
func (q *Queue) place(it *item, strategy queueingStrategy, event string) {
	if strategy == queueImmediately || !it.ready.After(q.options.Clock.Now()) {
		q.activate(it, event)
		return
	}
	it.part = inBackoff
	behind := &q.errorBackoffQ
	if !it.errored {
		behind = &q.backoffQ
		signal(q.wake)
	}
	behind.add(it)
	q.count(inBackoff, event)
	if behind.peek() == it { // else it is not the next whose time is over
		signal(q.rearm)
	}
}

// addUnschedulable puts a pod among the unschedulable ones.
func (q *Queue) addUnschedulable(it *item) {
	it.part = inUnschedulable
	q.join(q.unschedulablePods, it)
	q.count(inUnschedulable, scheduleAttemptFailure)
}

// take removes a pod from where it waits.
func (q *Queue) take(it *item) {
	switch it.part {
	case inActive:
		q.activeQ.remove(it)
	case inBackoff:
		if it.errored {
			q.errorBackoffQ.remove(it)
		} else {
			q.backoffQ.remove(it)
		}
	case inUnschedulable:
		q.leave(q.unschedulablePods, it)
	case inGated:
		q.leave(q.gatedPods, it)
	}
	it.part = nowhere
}

// Run moves pods whose back-off is over and leftovers that no event came for,
// each at its time, until ctx ends.
func (q *Queue) Run(ctx context.Context) error {
	timer := q.options.Clock.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait := time.Hour
		if next, more := q.release(); more {
			wait = next.Sub(q.options.Clock.Now())
		}
		timer.Reset(max(wait, 0))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C():
		case <-q.rearm:
		}
	}
}

// release moves what is due and returns when the next is.
func (q *Queue) release() (next time.Time, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.options.Clock.Now()
	soonest := func(at time.Time) {
		if !more || at.Before(next) {
			next, more = at, true
		}
	}
	for _, h := range []*itemHeap{&q.backoffQ, &q.errorBackoffQ} {
		for h.Len() > 0 && !h.peek().ready.After(now) {
			it := h.take()
			it.part = nowhere
			q.activate(it, "BackoffComplete")
		}
		if h.Len() > 0 {
			soonest(h.peek().ready)
		}
	}
	for _, it := range q.due(q.unschedulablePods, now, soonest) {
		q.take(it)
		it.Flushed = true
		q.requeue(it, queueAfterBackoff, unschedulableTimeout)
	}
	for _, it := range q.due(q.gatedPods, now, soonest) {
		q.reconsider(context.Background(), it, unschedulableTimeout)
		soonest(now.Add(q.options.FlushAfter)) // if it stays
	}
	return next, more
}

// Inflight counts the events that are kept for pods in flight.
func (q *Queue) Inflight() map[string]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	counts := map[string]int{}
	for _, event := range q.inFlightEvents.events {
		counts[event.Label()]++
	}
	return counts
}

func (q *Queue) count(to part, event string) {
	if q.options.Incoming != nil {
		q.options.Incoming(partNames[to], event)
	}
}

// signal leaves a mark in a channel of one place.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
