package queue

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
)

// doorkeeper is somebody's PreEnqueue plugin, which looks at more than the pod.
type doorkeeper struct {
	open  atomic.Bool
	asked atomic.Int32
}

func (*doorkeeper) Name() string { return "Doorkeeper" }

func (d *doorkeeper) PreEnqueue(context.Context, *core.Pod) *framework.Status {
	d.asked.Add(1)
	if d.open.Load() {
		return nil
	}
	return framework.NewStatus(framework.UnschedulableAndUnresolvable, "closed")
}

func (*doorkeeper) EventsToRegister() []framework.ClusterEventWithHint {
	return []framework.ClusterEventWithHint{{Resource: framework.NodeEvent, ActionType: framework.Add}}
}

// guarded runs test with a doorkeeper, and a count of the pods that enter each part.
func guarded(t *testing.T, test func(t *testing.T, q *Queue, d *doorkeeper, incoming map[string]int)) {
	t.Helper()
	inBubble(t, func(t *testing.T, q *Queue) {
		d, incoming := &doorkeeper{}, map[string]int{}
		profile := q.options.Profiles[core.DefaultSchedulerName]
		profile.PreEnqueue = append(profile.PreEnqueue, d)
		q.queueingHintMap[profile.SchedulerName] = profile.QueueingHints()
		q.options.Incoming = func(part, event string) { incoming[event+" "+part]++ }
		test(t, q, d, incoming)
	})
}

// A plugin that keeps a pod out is asked again when something happens that it waits
// for, and only then.
func TestAGatedPodWaitsForItsPluginsEvents(t *testing.T) {
	guarded(t, func(t *testing.T, q *Queue, d *doorkeeper, incoming map[string]int) {
		q.Add(t.Context(), fixture.Pod("a"))
		q.Add(t.Context(), fixture.Pod("b", fixture.Gate("x")))
		d.open.Store(true)
		q.MoveAllToActiveOrBackoffQueue(podGone())
		wantNext(t, q, "")
		time.Sleep(time.Minute)
		q.MoveAllToActiveOrBackoffQueue(nodeAdded(fixture.Node("n")))
		if a := wantNext(t, q, "a"); time.Since(a.Added) > 0 {
			t.Errorf("its waiting at the gate counts: added %v ago", time.Since(a.Added))
		}
		wantNext(t, q, "") // b has a gate of its own
		if d.asked.Load() != 2 {
			t.Errorf("asked %d times, want twice", d.asked.Load())
		}
		if incoming["UnscheduledPodAdd unschedulable"] != 2 || incoming["NodeAdd active"] != 1 || len(incoming) != 2 {
			t.Errorf("counted %v", incoming)
		}
	})
}

func TestAPodThatStaysGatedIsNotCountedAgain(t *testing.T) {
	guarded(t, func(t *testing.T, q *Queue, d *doorkeeper, incoming map[string]int) {
		pod := fixture.Pod("a", fixture.Gate("x"))
		q.Add(t.Context(), pod)
		labelled := pod.DeepCopy()
		labelled.Labels = map[string]string{"a": "b"}
		q.Add(t.Context(), labelled)
		ungated := labelled.DeepCopy()
		ungated.Spec.SchedulingGates = nil
		q.Add(t.Context(), ungated) // which the doorkeeper keeps out
		q.MoveAllToActiveOrBackoffQueue(nodeAdded(fixture.Node("n")))
		if incoming["UnscheduledPodAdd unschedulable"] != 1 || len(incoming) != 1 || q.Pending()["gated"] != 1 || d.asked.Load() != 2 {
			t.Errorf("counted %v, pending %v, asked %d times", incoming, q.Pending(), d.asked.Load())
		}
		q.Delete(pod.UID)
		if q.Pending()["gated"] != 0 || len(q.gatedPods) != 0 {
			t.Errorf("pending %v after its deletion", q.Pending())
		}
	})
}

// No event may come: the flush of leftovers asks, too.
func TestAGatedPodIsFlushed(t *testing.T) {
	guarded(t, func(t *testing.T, q *Queue, d *doorkeeper, _ map[string]int) {
		q.Add(t.Context(), fixture.Pod("a"))
		q.Add(t.Context(), fixture.Pod("b")) // while one is asked about, the other waits on
		time.Sleep(DefaultFlushAfter + time.Second)
		wantNext(t, q, "")
		d.open.Store(true)
		time.Sleep(DefaultFlushAfter)
		wantNext(t, q, "a")
		wantNext(t, q, "b")
		if d.asked.Load() != 6 {
			t.Errorf("asked %d times, want three for each", d.asked.Load())
		}
	})
}

// A pod that comes back after a failed attempt passes the PreEnqueue plugins again.
func TestAPodThatComesBackMayBeGated(t *testing.T) {
	guarded(t, func(t *testing.T, q *Queue, d *doorkeeper, _ map[string]int) {
		d.open.Store(true)
		q.Add(t.Context(), fixture.Pod("a", fixture.Requests("cpu", "8")))
		q.AddUnschedulable(wantNext(t, q, "a").Pod.UID, fitFailure)
		d.open.Store(false)
		q.MoveAllToActiveOrBackoffQueue(podGone())
		wantNext(t, q, "")
		if pending := q.Pending(); pending["gated"] != 1 || pending["unschedulable"] != 0 {
			t.Errorf("pending %v", pending)
		}
		d.open.Store(true)
		q.MoveAllToActiveOrBackoffQueue(nodeAdded(fixture.Node("n")))
		wantNext(t, q, "a")
	})
}
