package queue

import (
	"testing"

	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
)

// What the API shows of a pod in flight reaches its attempt: the newest version, and that it
// needs no node any more.
func TestWhatComesDuringAFlight(t *testing.T) {
	isClosed := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	inBubble(t, func(t *testing.T, q *Queue) {
		q.Add(t.Context(), fixture.Pod("a"))
		pod := wantNext(t, q, "a").Pod
		left := q.Left(pod.UID)
		if isClosed(left) || !isClosed(q.Left("unknown")) {
			t.Error("a pod in flight has left, or an unknown one has not")
		}
		if now, there := q.Current(pod.UID); !there || now != pod {
			t.Errorf("the pod is %v, %t", now, there)
		}
		if _, there := q.Current("unknown"); there {
			t.Error("a pod that the queue does not have is there")
		}
		newer := pod.DeepCopy()
		newer.Labels = map[string]string{"version": "newer"}
		q.Add(t.Context(), newer)
		if now, there := q.Current(pod.UID); !there || now != newer || isClosed(left) {
			t.Errorf("after an update, the pod is %v, %t", now, there)
		}
		q.Delete(newer.UID)
		if !isClosed(left) {
			t.Error("the pod's deletion is not told")
		}
		q.Done(pod.UID)
		wantEmpty(t, q)
	})
}

// Events are kept from the oldest flight on; who asks for older ones is told that some are gone.
func TestEventLog(t *testing.T) {
	event := func(name string) framework.ClusterEvent {
		return framework.ClusterEvent{OldPod: fixture.Pod(name)}
	}
	var l eventLog
	for _, name := range []string{"a", "b", "c", "d"} {
		l.add(event(name))
	}
	l.forget(0)
	l.forget(1)
	l.forget(1) // has gone already
	for number, want := range map[uint64]struct {
		names    string
		complete bool
	}{0: {"bcd", false}, 1: {"bcd", true}, 3: {"d", true}, l.next(): {"", true}} {
		names := ""
		events, complete := l.since(number)
		for _, e := range events {
			names += e.OldPod.Name
		}
		if names != want.names || complete != want.complete {
			t.Errorf("since %d: %q, %t, want %q, %t", number, names, complete, want.names, want.complete)
		}
	}
	if spare := l.events[:cap(l.events)]; spare[len(l.events)].OldPod != nil {
		t.Error("an event that is forgotten keeps its pod in memory")
	}
	l.forget(l.next() + 5)
	if l.next() != 9 || len(l.events) != 0 {
		t.Errorf("%d events are left, the next is %d", len(l.events), l.next())
	}
	for range maxInFlightEvents + 1 {
		l.add(event("e"))
	}
	if got := len(l.events); got != maxInFlightEvents/2+1 {
		t.Errorf("%d events are kept", got)
	}
}
