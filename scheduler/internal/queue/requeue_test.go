package queue

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/plugins/noderesources"
	"kctl/scheduler/internal/plugins/tainttoleration"
)

func TestUnschedulablePodWaitsForWhatItsPluginWaitsFor(t *testing.T) {
	big := fixture.Node("big", fixture.Allocatable("cpu", "64"))
	tests := map[string]struct {
		failure Failure
		event   framework.ClusterEvent
		back    bool
	}{
		"fit, a pod went":             {fitFailure, podGone(), true},
		"fit, a big node came":        {fitFailure, nodeAdded(big), true},
		"fit, a node came, too small": {fitFailure, nodeAdded(fixture.Node("small")), false},
		"fit, a taint went": {fitFailure, framework.ClusterEvent{
			Resource: framework.NodeEvent, ActionType: framework.UpdateNodeTaint, OldNode: big, NewNode: big,
		}, false},
		"taints, a pod went":              {taintFailure, podGone(), false},
		"taints, a clean node came":       {taintFailure, nodeAdded(big), true},
		"taints, a tainted node came":     {taintFailure, nodeAdded(fixture.Node("t", fixture.Taint("k", "v", corev1.TaintEffectNoSchedule))), false},
		"no node at all, any node came":   {Failure{}, nodeAdded(fixture.Node("small")), true},
		"unknown plugin, anything at all": {Failure{Plugins: []string{"ThirdParty"}}, podGone(), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, q *Queue) {
				q.Add(t.Context(), fixture.Pod("a", fixture.Requests("cpu", "8")))
				q.AddUnschedulable(wantNext(t, q, "a").Pod.UID, test.failure)
				wantNext(t, q, "")
				q.MoveAllToActiveOrBackoffQueue(test.event)
				if test.back {
					wantNext(t, q, "a")
				} else {
					wantNext(t, q, "")
				}
			})
		})
	}
}

func TestEventBetweenPopAndFailureIsNotMissed(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		q.Add(t.Context(), fixture.Pod("early", fixture.Requests("cpu", "8")))
		early := wantNext(t, q, "early")
		q.Add(t.Context(), fixture.Pod("late", fixture.Requests("cpu", "8")))
		q.MoveAllToActiveOrBackoffQueue(podGone())
		late := wantNext(t, q, "late")
		q.AddUnschedulable(early.Pod.UID, fitFailure)
		q.AddUnschedulable(late.Pod.UID, fitFailure)
		wantNext(t, q, "early") // did not see the event
		wantNext(t, q, "")      // late was popped after it
		if len(q.inFlightEvents.events) != 0 {
			t.Errorf("%d events are kept without need", len(q.inFlightEvents.events))
		}
	})
}

func TestRoomThatThePodItselfGaveBackIsNoNews(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		pod := fixture.Pod("a")
		q.Add(t.Context(), pod)
		wantNext(t, q, "a")
		q.MoveAllToActiveOrBackoffQueue(framework.ClusterEvent{Resource: framework.AssignedPodEvent, ActionType: framework.Delete, OldPod: pod})
		q.AddUnschedulable(pod.UID, fitFailure)
		wantNext(t, q, "")
	})
}

func TestForgottenEventsCountAsRelevant(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		q.Add(t.Context(), fixture.Pod("a"))
		a := wantNext(t, q, "a")
		irrelevant := framework.ClusterEvent{Resource: framework.AssignedPodEvent, ActionType: framework.Add}
		for range 3 * maxInFlightEvents {
			q.MoveAllToActiveOrBackoffQueue(irrelevant)
		}
		if len(q.inFlightEvents.events) > maxInFlightEvents {
			t.Errorf("%d events are kept", len(q.inFlightEvents.events))
		}
		q.AddUnschedulable(a.Pod.UID, fitFailure)
		wantNext(t, q, "a")
	})
}

// An event of a plugin that found no fault brings a pod back at once, whatever other plugins
// wait for it; that of one that rejected the pod, when its back-off is over.
func TestWhereAnEventBringsAPod(t *testing.T) {
	big := nodeAdded(fixture.Node("big", fixture.Allocatable("cpu", "64")))
	tainted := nodeAdded(fixture.Node("t", fixture.Allocatable("cpu", "64"), fixture.Taint("k", "v", corev1.TaintEffectNoSchedule)))
	both := []string{noderesources.FitName, tainttoleration.Name}
	for name, c := range map[string]struct {
		failure Failure
		event   framework.ClusterEvent
		late    bool // when the back-off is over
		want    string
	}{
		"rejected":                         {fitFailure, big, false, "backoff"},
		"rejected, later":                  {fitFailure, big, true, "active"},
		"pending":                          {Failure{Plugins: []string{noderesources.FitName}, Pending: []string{noderesources.FitName}}, big, false, "active"},
		"rejected by one, pending another": {Failure{Plugins: both, Pending: []string{tainttoleration.Name}}, big, false, "active"},
		"pending one, another's event":     {Failure{Plugins: both, Pending: []string{tainttoleration.Name}}, tainted, false, "backoff"},
		"an error":                         {Failure{Error: true}, podGone(), false, "backoff"},
		"not concerned":                    {taintFailure, podGone(), false, "unschedulable"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, q *Queue) {
				q.Add(t.Context(), fixture.Pod("a", fixture.Requests("cpu", "8")))
				q.AddUnschedulable(wantNext(t, q, "a").Pod.UID, c.failure)
				if c.late {
					time.Sleep(time.Minute) // the bubble's clock
				}
				q.MoveAllToActiveOrBackoffQueue(c.event)
				if got := q.Pending(); got[c.want] != 1 {
					t.Errorf("the pod is in %v, want %s", got, c.want)
				}
			})
		})
	}
}

// Activate brings back what waits for an event, after its back-off, and nothing else.
func TestActivate(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		q.Add(t.Context(), fixture.Pod("waits"))
		waits := wantNext(t, q, "waits").Pod.UID
		q.AddUnschedulable(waits, taintFailure)
		q.Add(t.Context(), fixture.Pod("flies"))
		flies := wantNext(t, q, "flies").Pod.UID
		q.Add(t.Context(), fixture.Pod("active"))
		if !q.Busy() {
			t.Error("not busy with a pod to be attempted")
		}
		for _, uid := range []types.UID{waits, flies, fixture.Pod("active").UID, "unknown"} {
			q.Activate(uid)
		}
		if got := q.Pending(); got["backoff"] != 1 || got["active"] != 1 || got["unschedulable"] != 0 {
			t.Errorf("pods are in %v", got)
		}
		wantNext(t, q, "active")
		if q.Busy() {
			t.Error("busy with pods that wait for their back-off")
		}
		wantNext(t, q, "waits")
		wantNext(t, q, "")
		q.Done(flies)
	})
}

// A pod counts for each plugin that rejected it.
func TestUnschedulableByPlugin(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		for name, failure := range map[string]Failure{
			"one": taintFailure, "two": fitFailure, "three": {Plugins: []string{noderesources.FitName, tainttoleration.Name}},
		} {
			q.Add(t.Context(), fixture.Pod(name))
			q.AddUnschedulable(wantNext(t, q, name).Pod.UID, failure)
		}
		counts := map[string]int{}
		for range 2 {
			q.Unschedulable(func(_, plugin string, pods int) { counts[plugin] += pods })
		}
		if counts[noderesources.FitName] != 4 || counts[tainttoleration.Name] != 4 {
			t.Errorf("twice two pods for each plugin: %v", counts)
		}
	})
}
