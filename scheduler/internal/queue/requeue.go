package queue

import (
	"container/list"
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kctl/scheduler/framework"
)

// Move tells the queue about an event in the cluster: pods that it may help are
// brought back.
func (q *Queue) Move(event framework.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.options.Handled != nil {
		began := q.options.Clock.Now()
		defer func() { q.options.Handled(event.Label(), q.options.Clock.Since(began)) }()
	}
	if q.flying.Len() > 0 {
		q.journal.add(event)
	}
	for _, w := range q.parked {
		if !w.concerns(q.interests, event) {
			continue
		}
		for e := w.pods.Front(); e != nil; {
			next := e.Next()
			q.looked++
			q.wakeBy(e.Value.(*item), event)
			e = next
		}
	}
}

// TryAgain brings back an unschedulable pod that waited for room that it will not
// get.
func (q *Queue) TryAgain(uid types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if it, known := q.items[uid]; known && it.place == unschedulable {
		q.take(it)
		q.requeue(it, afterBackoff, framework.Event{Resource: framework.AssignedPodEvent, Action: framework.Delete}.Label())
	}
}

// help is what an event does for a pod that was rejected.
type help int

const (
	none help = iota
	afterBackoff
	atOnce
)

// wakeBy brings an unschedulable pod back if event helps it.
func (q *Queue) wakeBy(it *item, event framework.Event) {
	if help := q.helps(it, event); help != none {
		q.take(it)
		q.requeue(it, help, event.Label())
	}
}

// helps reports whether event may make one of the plugins that rejected the
// pod change its mind.
func (q *Queue) helps(it *item, event framework.Event) help {
	if event.Resource == framework.PodEvent && event.NewPod.UID != it.Pod.UID {
		return none
	}
	if event.Action == framework.Delete && event.OldPod != nil && event.OldPod.UID == it.Pod.UID {
		return none // room freed by its own failed binding does not help it
	}
	if event.Nominated && it.Priority > framework.Priority(event.OldPod) {
		return none
	}
	if len(it.plugins) == 0 {
		return afterBackoff
	}
	helped := none
	for _, plugin := range it.plugins {
		if !q.interested(it, plugin, event) {
			continue
		}
		if slices.Contains(it.pending, plugin) {
			return atOnce
		}
		helped = afterBackoff
		if len(it.pending) == 0 {
			break
		}
	}
	return helped
}

// interested reports whether a plugin that rejected the pod waits for event.
func (q *Queue) interested(it *item, plugin string, event framework.Event) bool {
	interests, known := q.interests[it.profile.SchedulerName][plugin]
	return !known || interests == nil || slices.ContainsFunc(interests, func(i framework.EventInterest) bool {
		return i.IsAbout(event) && (i.Hint == nil || q.hint(i, it, plugin, event))
	})
}

// hint asks a plugin's hint.
func (q *Queue) hint(interest framework.EventInterest, it *item, plugin string, event framework.Event) bool {
	if q.hints++; q.options.Hinted == nil || q.hints%measuredHints != 0 {
		return interest.Hint(it.PodInfo, event)
	}
	began := q.options.Clock.Now()
	helps := interest.Hint(it.PodInfo, event)
	q.options.Hinted(plugin, event.Label(), helps, q.options.Clock.Since(began))
	return helps
}

// requeue puts a pod where it belongs, depending on what helped it: into the
// active queue, into the back-off if that is not over, or among the
// unschedulable.
func (q *Queue) requeue(it *item, help help, event string) {
	now := q.options.Clock.Now()
	switch {
	case help == none:
		q.park(it, now)
		return
	case help == atOnce || !it.ready.After(now):
		q.activate(it, event)
		return
	}
	it.place = backingOff
	behind := &q.errored
	if !it.errored {
		behind = &q.backoff
		q.signal(q.wake)
	}
	behind.add(it)
	q.count(backingOff, event)
	if behind.peek() == it { // else it is not the next whose time is over
		q.signal(q.rearm)
	}
}

// park puts a pod among the unschedulable ones.
func (q *Queue) park(it *item, now time.Time) {
	it.place, it.parkedAt = unschedulable, now
	key := it.profile.SchedulerName + "\x00" + strings.Join(it.plugins, "\x00")
	if it.waits = q.parked[key]; it.waits == nil {
		it.waits = &waiting{key: key, profile: it.profile.SchedulerName, plugins: it.plugins, pods: list.New()}
		q.parked[key] = it.waits
	}
	it.element = it.waits.pods.PushBack(it)
	q.count(unschedulable, "ScheduleAttemptFailure")
	if it.waits.pods.Len() == 1 { // else others are flushed before it
		q.signal(q.rearm)
	}
}

// take removes a pod from where it waits.
func (q *Queue) take(it *item) {
	switch it.place {
	case active:
		q.active.remove(it)
	case backingOff:
		if it.errored {
			q.errored.remove(it)
		} else {
			q.backoff.remove(it)
		}
	case unschedulable:
		it.waits.pods.Remove(it.element)
		if it.waits.pods.Len() == 0 {
			delete(q.parked, it.waits.key)
		}
		it.element, it.waits = nil, nil
	case gated:
		q.gated--
	}
	it.place = nowhere
}

// Run moves pods whose back-off is over and leftovers that no event came for,
// each at its time, until ctx ends.
func (q *Queue) Run(ctx context.Context) error {
	timer := q.options.Clock.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait := time.Hour
		if next, any := q.release(); any {
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
func (q *Queue) release() (next time.Time, any bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.options.Clock.Now()
	soonest := func(at time.Time) {
		if !any || at.Before(next) {
			next, any = at, true
		}
	}
	for _, h := range []*itemHeap{&q.backoff, &q.errored} {
		for h.Len() > 0 && !h.peek().ready.After(now) {
			it := h.take()
			it.place = nowhere
			q.activate(it, "BackoffComplete")
		}
		if h.Len() > 0 {
			soonest(h.peek().ready)
		}
	}
	for _, w := range q.parked {
		for e := w.pods.Front(); e != nil; e = w.pods.Front() {
			it := e.Value.(*item)
			if due := it.parkedAt.Add(q.options.FlushAfter); due.After(now) {
				soonest(due)
				break
			}
			q.take(it)
			it.Flushed = true
			q.requeue(it, afterBackoff, "UnschedulableTimeout")
		}
	}
	return next, any
}

// Inflight counts the events that are kept for pods in flight.
func (q *Queue) Inflight() map[string]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	counts := map[string]int{}
	for _, event := range q.journal.events {
		counts[event.Label()]++
	}
	return counts
}

func (q *Queue) count(to place, event string) {
	if q.options.Incoming != nil {
		q.options.Incoming(placeNames[to], event)
	}
}

// signal leaves a mark in a channel of one place.
func (q *Queue) signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
