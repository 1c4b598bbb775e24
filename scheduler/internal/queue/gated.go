package queue

import (
	"context"

	"kctl/scheduler/framework"
)

// passes asks the PreEnqueue plugins about a pod that is in no part of the queue and is
// about to become active or to back off. One that they reject is gated until an event
// comes for which the plugin waits, like any other that a plugin rejected.
func (q *Queue) passes(ctx context.Context, it *item, event string) bool {
	status := it.profile.RunPreEnqueue(ctx, it.PodInfo)
	if status.IsSuccess() {
		q.added(it)
		return true
	}
	it.part, it.Flushed = inGated, false
	it.plugins, it.pending = []string{status.Plugin()}, nil
	q.join(q.gatedPods, it)
	// Metrics count it among the unschedulable ones, as upstream's do.
	q.count(inUnschedulable, event)
	if q.options.Gated != nil {
		q.options.Gated(it.Pod, status)
	}
	return false
}

// added notes when a pod was first let in: the time in which it was gated is not the
// scheduler's.
func (q *Queue) added(it *item) {
	if it.Added.IsZero() {
		it.Added = q.options.Clock.Now()
	}
}

// reconsider asks again about a gated pod. One that stays gated has gone nowhere: it is
// not counted again, and waits for what its latest obstacle waits for.
func (q *Queue) reconsider(ctx context.Context, it *item, event string) {
	status := it.profile.RunPreEnqueue(ctx, it.PodInfo)
	q.leave(q.gatedPods, it)
	if !status.IsSuccess() {
		it.plugins = []string{status.Plugin()}
		q.join(q.gatedPods, it)
		return
	}
	q.added(it)
	q.place(it, queueAfterBackoff, event)
}

// wakeGated has those gated pods reconsidered that an event may help. Pods whose gates
// are their own are not even looked at.
func (q *Queue) wakeGated(event framework.ClusterEvent) {
	var helped []*item
	for _, w := range q.gatedPods {
		if !q.concerns(w, event) {
			continue
		}
		for e := w.pods.Front(); e != nil; e = e.Next() {
			q.looked++
			if it := e.Value.(*item); q.isEventRelevant(it, event) != queueSkip {
				helped = append(helped, it)
			}
		}
	}
	for _, it := range helped {
		q.reconsider(context.Background(), it, event.Label())
	}
}
