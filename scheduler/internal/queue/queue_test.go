package queue

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/plugins/noderesources"
	"kctl/scheduler/internal/plugins/prioritysort"
	"kctl/scheduler/internal/plugins/schedulinggates"
	"kctl/scheduler/internal/plugins/tainttoleration"
)

func newQueue() *Queue {
	profile := &framework.Profile{
		SchedulerName: core.DefaultSchedulerName,
		PreEnqueue:    []framework.PreEnqueue{schedulinggates.New()},
		QueueSort:     prioritysort.New(),
		Filter:        []framework.Filter{tainttoleration.New(), noderesources.NewFit(noderesources.FitOptions{})},
	}
	return New(Options{
		Profiles: map[string]*framework.Profile{profile.SchedulerName: profile},
		Clock:    clock.RealClock{}, Backoff: DefaultBackoff, FlushAfter: DefaultFlushAfter,
	})
}

// inBubble runs test in fake time, with the queue's timers running.
func inBubble(t *testing.T, test func(t *testing.T, q *Queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = q.Run(ctx)
		}()
		test(t, q)
		cancel()
		<-done
	})
}

// pop returns the name of the next pod, or "" if none is ready now.
func pop(t *testing.T, q *Queue) *framework.QueuedPodInfo {
	t.Helper()
	synctest.Wait()
	return q.tryPop()
}

func wantNext(t *testing.T, q *Queue, name string) *framework.QueuedPodInfo {
	t.Helper()
	pod := pop(t, q)
	switch {
	case pod == nil && name != "":
		t.Fatalf("nothing is next, want %s (pending %v)", name, q.Pending())
	case pod != nil && pod.Pod.Name != name:
		t.Fatalf("%s is next, want %q", pod.Pod.Name, name)
	}
	return pod
}

var (
	fitFailure   = Failure{Plugins: []string{noderesources.FitName}}
	taintFailure = Failure{Plugins: []string{tainttoleration.Name}}
)

func podGone() framework.ClusterEvent {
	return framework.ClusterEvent{Resource: framework.AssignedPodEvent, ActionType: framework.Delete, OldPod: fixture.Pod("gone", fixture.On("n"))}
}

func nodeAdded(node *core.Node) framework.ClusterEvent {
	return framework.ClusterEvent{Resource: framework.NodeEvent, ActionType: framework.Add, NewNode: node}
}

func TestHigherPriorityThenLongerWaitingGoesFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		for _, p := range []struct {
			name     string
			priority int32
		}{{"low-1", 0}, {"high-1", 10}, {"low-2", 0}, {"high-2", 10}} {
			q.Add(t.Context(), fixture.Pod(p.name, fixture.Priority(p.priority)))
			time.Sleep(time.Millisecond)
		}
		for _, name := range []string{"high-1", "high-2", "low-1", "low-2"} {
			q.Done(wantNext(t, q, name).Pod.UID)
		}
		wantNext(t, q, "")
	})
}

// A pod that changes while it waits gets the place of what it is now; how long it waits
// counts from when it came.
func TestAChangedPodMovesInTheQueue(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		came := time.Now()
		first, last := fixture.Pod("first", fixture.Priority(9)), fixture.Pod("last", fixture.Priority(1))
		q.Add(t.Context(), first)
		q.Add(t.Context(), last)
		time.Sleep(time.Second)
		raised := last.DeepCopy()
		fixture.Priority(10)(raised)
		q.Add(t.Context(), raised)
		for _, name := range []string{"last", "first"} {
			if pod := wantNext(t, q, name); !pod.Added.Equal(came) {
				t.Errorf("%s was added at %v, want %v", name, pod.Added, came)
			}
		}
	})
}

func TestPodsOfOthersAreNotTaken(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		q.Add(t.Context(), fixture.Pod("theirs", func(p *core.Pod) { p.Spec.SchedulerName = "another" }))
		wantNext(t, q, "")
	})
}

func TestPopWaitsForAPod(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		got := make(chan string, 1)
		go func() {
			pod, err := q.Pop(t.Context())
			if err == nil {
				got <- pod.Pod.Name
			}
		}()
		synctest.Wait()
		q.Add(t.Context(), fixture.Pod("a"))
		if name := <-got; name != "a" {
			t.Errorf("got %s", name)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := q.Pop(ctx); err == nil {
			t.Error("Pop outlasts its context")
		}
	})
}

func TestErrorWaitsItsBackoffAndItGrows(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		q.Add(t.Context(), fixture.Pod("a"))
		a := wantNext(t, q, "a")
		for _, backoff := range []time.Duration{1, 2, 4, 8, 10, 10} {
			q.AddUnschedulable(a.Pod.UID, Failure{Error: true})
			time.Sleep(backoff*time.Second - time.Millisecond)
			wantNext(t, q, "")
			time.Sleep(2 * time.Millisecond)
			a = wantNext(t, q, "a")
		}
		if a.Attempts != 7 {
			t.Errorf("%d attempts counted, want 7", a.Attempts)
		}
	})
}

// The wait after an error does not grow with earlier rejections, and an error
// does not reset their count.
func TestErrorsAndRefusalsBackOffApart(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		q.Add(t.Context(), fixture.Pod("a"))
		a := wantNext(t, q, "a")
		for range 5 {
			q.AddUnschedulable(a.Pod.UID, fitFailure)
			time.Sleep(time.Minute)
			q.MoveAllToActiveOrBackoffQueue(podGone())
			a = wantNext(t, q, "a")
		}
		q.AddUnschedulable(a.Pod.UID, Failure{Error: true})
		time.Sleep(time.Second + time.Millisecond)
		a = wantNext(t, q, "a")
		q.AddUnschedulable(a.Pod.UID, fitFailure)
		if wait := time.Until(q.items[a.Pod.UID].ready); wait != 10*time.Second {
			t.Errorf("after the sixth refusal it waits %v, want 10s", wait)
		}
	})
}

func TestBackingOffPodGoesWhenNobodyElseWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		q.Add(t.Context(), fixture.Pod("a"))
		q.AddUnschedulable(wantNext(t, q, "a").Pod.UID, fitFailure)
		q.Add(t.Context(), fixture.Pod("b"))
		q.MoveAllToActiveOrBackoffQueue(podGone()) // a may be tried again, but backs off
		wantNext(t, q, "b")
		wantNext(t, q, "a")
	})
}

func TestLeftoversAreFlushed(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		q.Add(t.Context(), fixture.Pod("a"))
		q.AddUnschedulable(wantNext(t, q, "a").Pod.UID, fitFailure)
		time.Sleep(DefaultFlushAfter - time.Second)
		wantNext(t, q, "")
		time.Sleep(2 * time.Second)
		wantNext(t, q, "a")
	})
}

func TestGatedPodWaitsForItsGates(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		pod := fixture.Pod("a", fixture.Gate("x"), fixture.Gate("y"))
		q.Add(t.Context(), pod)
		q.MoveAllToActiveOrBackoffQueue(podGone())
		wantNext(t, q, "")
		one := pod.DeepCopy()
		one.Spec.SchedulingGates = one.Spec.SchedulingGates[:1]
		q.Add(t.Context(), one)
		wantNext(t, q, "")
		if n := q.Pending()["gated"]; n != 1 {
			t.Errorf("%d gated pods, want 1", n)
		}
		none := pod.DeepCopy()
		none.Spec.SchedulingGates = nil
		time.Sleep(time.Hour)
		q.Add(t.Context(), none)
		if a := wantNext(t, q, "a"); time.Since(a.Added) > time.Minute {
			t.Errorf("its waiting for gates counts: added %v ago", time.Since(a.Added))
		}
		if n := q.Pending()["gated"]; n != 0 {
			t.Errorf("%d gated pods, want 0", n)
		}
	})
}

func TestUpdateOfThePodItself(t *testing.T) {
	tolerate := func(p *core.Pod) *core.Pod {
		p = p.DeepCopy()
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		return p
	}
	statusOnly := func(p *core.Pod) *core.Pod {
		p = p.DeepCopy()
		p.Status.Conditions = []core.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}}
		return p
	}
	for name, test := range map[string]struct {
		update   func(*core.Pod) *core.Pod
		inFlight bool
		back     bool
	}{
		"toleration, waiting":   {tolerate, false, true},
		"toleration, in flight": {tolerate, true, true},
		"status, waiting":       {statusOnly, false, false},
		"status, in flight":     {statusOnly, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, q *Queue) {
				pod := fixture.Pod("a")
				q.Add(t.Context(), pod)
				wantNext(t, q, "a")
				if test.inFlight {
					q.Add(t.Context(), test.update(pod))
					q.AddUnschedulable(pod.UID, taintFailure)
				} else {
					q.AddUnschedulable(pod.UID, taintFailure)
					q.Add(t.Context(), test.update(pod))
				}
				if !test.back {
					wantNext(t, q, "")
					return
				}
				if again := wantNext(t, q, "a"); len(again.Pod.Spec.Tolerations) != 1 {
					t.Error("popped in its old version")
				}
			})
		})
	}
}

func TestDeletedPodIsGoneFromEverywhere(t *testing.T) {
	bring := map[string]func(t *testing.T, q *Queue, pod *core.Pod){
		"active": func(*testing.T, *Queue, *core.Pod) {},
		"unschedulable": func(t *testing.T, q *Queue, pod *core.Pod) {
			wantNext(t, q, "a")
			q.AddUnschedulable(pod.UID, fitFailure)
		},
		"backoff": func(t *testing.T, q *Queue, pod *core.Pod) {
			wantNext(t, q, "a")
			q.AddUnschedulable(pod.UID, fitFailure)
			q.MoveAllToActiveOrBackoffQueue(podGone())
		},
		"error backoff": func(t *testing.T, q *Queue, pod *core.Pod) {
			wantNext(t, q, "a")
			q.AddUnschedulable(pod.UID, Failure{Error: true})
		},
	}
	for name, to := range bring {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, q *Queue) {
				pod := fixture.Pod("a")
				q.Add(t.Context(), pod)
				to(t, q, pod)
				q.Delete(pod.UID)
				q.Delete(pod.UID)
				time.Sleep(time.Hour)
				wantNext(t, q, "")
				wantEmpty(t, q)
			})
		})
	}
	for name, end := range map[string]func(q *Queue, pod *core.Pod){
		"in flight, then failed": func(q *Queue, pod *core.Pod) { q.AddUnschedulable(pod.UID, Failure{Error: true}) },
		"in flight, then done":   func(q *Queue, pod *core.Pod) { q.Done(pod.UID) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, q *Queue) {
				pod := fixture.Pod("a")
				q.Add(t.Context(), pod)
				wantNext(t, q, "a")
				q.Delete(pod.UID)
				if _, waits := q.Current(pod.UID); waits {
					t.Error("still said to wait")
				}
				end(q, pod)
				time.Sleep(time.Hour)
				wantNext(t, q, "")
				wantEmpty(t, q)
			})
		})
	}
}

func wantEmpty(t *testing.T, q *Queue) {
	t.Helper()
	if len(q.items) != 0 || q.inFlight.Len() != 0 || len(q.unschedulablePods) != 0 || len(q.inFlightEvents.events) != 0 {
		t.Errorf("left behind: %d items, %d in flight, unschedulable %v, %d events",
			len(q.items), q.inFlight.Len(), q.unschedulablePods, len(q.inFlightEvents.events))
	}
}

// A hundred thousand pods that fit nowhere make no work until something happens
// that they wait for.
func TestManyUnschedulablePodsMakeNoWork(t *testing.T) {
	const many = 100_000
	inBubble(t, func(t *testing.T, q *Queue) {
		var incoming atomic.Int64
		q.options.Incoming = func(string, string) { incoming.Add(1) }
		for i := range many {
			q.Add(t.Context(), fixture.Pod(strconv.Itoa(i)))
			q.AddUnschedulable(q.tryPop().Pod.UID, fitFailure)
		}
		for range 1000 {
			q.MoveAllToActiveOrBackoffQueue(framework.ClusterEvent{Resource: framework.NodeEvent, ActionType: framework.UpdateNodeTaint})
		}
		time.Sleep(DefaultFlushAfter - time.Minute)
		synctest.Wait()
		if q.Pending()["unschedulable"] != many || incoming.Load() != 2*many || len(q.inFlightEvents.events) != 0 {
			t.Errorf("%v; %d moves between the parts of the queue, want %d; %d events kept", q.Pending(), incoming.Load(), 2*many, len(q.inFlightEvents.events))
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if q.Pending()["active"] != many {
			t.Errorf("after the flush of leftovers: %v", q.Pending())
		}
	})
}
