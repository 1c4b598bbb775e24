package queue

import (
	"strconv"
	"testing"

	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/plugins/noderesources"
)

// With thousands of pods that fit nowhere, the cost of an event depends on the
// pods that it concerns. An event for which their plugins don't wait has none
// of them checked, even if a few others wait for it; a new node has each
// checked once, and wakes those that it has room for.
func TestEventsCostWhatTheyConcern(t *testing.T) {
	const many, few, events = 20_000, 10, 1000
	q := newQueue()
	reject := func(name, cpu string, failure Failure) {
		q.Add(t.Context(), fixture.Pod(name, fixture.Requests("cpu", cpu)))
		q.AddUnschedulable(q.tryPop().Pod.UID, failure)
	}
	for i := range many {
		reject("large-"+strconv.Itoa(i), "64", fitFailure)
	}
	for i := range few {
		reject("small-"+strconv.Itoa(i), "1", fitFailure)
		reject("tainted-"+strconv.Itoa(i), "1", taintFailure)
	}
	for _, test := range []struct {
		name   string
		event  framework.ClusterEvent
		times  int
		looked int // pods, each time
		woken  int // in the end
	}{
		{"another pod is bound", framework.ClusterEvent{
			Resource: framework.AssignedPodEvent, ActionType: framework.Add, NewPod: fixture.Pod("bound", fixture.On("n")),
		}, events, 0, 0},
		{"a node's label changes", framework.ClusterEvent{Resource: framework.NodeEvent, ActionType: framework.UpdateNodeLabel, NewNode: fixture.Node("n")}, events,
			0, 0},
		{"a taint changes", framework.ClusterEvent{
			Resource:   framework.NodeEvent,
			ActionType: framework.UpdateNodeTaint,
			OldNode:    fixture.Node("n"),
			NewNode:    fixture.Node("n", fixture.Taint("k", "v", "NoSchedule")),
		}, events, few, 0},
		{"a tainted node comes", framework.ClusterEvent{
			Resource:   framework.NodeEvent,
			ActionType: framework.Add,
			NewNode:    fixture.Node("n", fixture.Taint("k", "v", "NoSchedule")),
		}, 1, many + 2*few, few},
		{"a larger node comes", framework.ClusterEvent{
			Resource:   framework.NodeEvent,
			ActionType: framework.Add,
			NewNode:    fixture.Node("n", fixture.Allocatable("cpu", "32")),
		}, 1, many + few, few},
	} {
		before, waiting := q.looked, q.Pending()["unschedulable"]
		for range test.times {
			q.MoveAllToActiveOrBackoffQueue(test.event)
		}
		if looked := q.looked - before; looked != test.looked*test.times {
			t.Errorf("%s: %d pods were looked at in %d events, want %d each", test.name, looked, test.times, test.looked)
		}
		if woken := waiting - q.Pending()["unschedulable"]; woken != test.woken {
			t.Errorf("%s: %d pods were woken, want %d", test.name, woken, test.woken)
		}
	}
	q.Unschedulable(func(profile, plugin string, pods int) {
		if plugin != noderesources.FitName || pods != many {
			t.Errorf("%d pods wait for %s of %s", pods, plugin, profile)
		}
	})
}
