package queue

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kctl/scheduler/internal/fixture"
)

// TestRandomWalk does what a cluster does, in random order, and checks after
// each step that no pod was lost, duplicated, or popped after it left; and in
// the end that every pod that stayed is popped, even without an event.
func TestRandomWalk(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inBubble(t, func(t *testing.T, q *Queue) { walk(t, q, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func walk(t *testing.T, q *Queue, random *rand.Rand) {
	waiting := map[types.UID]bool{} // known to have no node
	inFlight := map[types.UID]bool{}
	check := func(step int) {
		pending := 0
		for _, n := range q.Pending() {
			pending += n
		}
		stayed := 0
		for uid := range waiting {
			if !inFlight[uid] {
				stayed++
			}
		}
		if pending != stayed {
			t.Fatalf("step %d: %d pods pending, want %d", step, pending, stayed)
		}
		if q.inFlight.Len() != len(inFlight) {
			t.Fatalf("step %d: %d in flight, want %d", step, q.inFlight.Len(), len(inFlight))
		}
	}
	one := func(set map[types.UID]bool) (types.UID, bool) {
		for uid := range set {
			return uid, true
		}
		return "", false
	}
	for step := range 400 {
		switch random.IntN(8) {
		case 0, 1:
			pod := fixture.Pod(fmt.Sprint("p", step), fixture.Priority(random.Int32N(3)))
			waiting[pod.UID] = true
			q.Add(t.Context(), pod)
		case 2, 3:
			if pod := pop(t, q); pod != nil {
				if inFlight[pod.Pod.UID] || !waiting[pod.Pod.UID] {
					t.Fatalf("step %d: %s was served though it is in flight or gone", step, pod.Pod.Name)
				}
				inFlight[pod.Pod.UID] = true
			}
		case 4:
			if uid, ok := one(inFlight); ok {
				q.Done(uid)
				delete(inFlight, uid)
				delete(waiting, uid)
			}
		case 5:
			if uid, ok := one(inFlight); ok {
				q.AddUnschedulable(uid, []Failure{{Error: true}, fitFailure, taintFailure}[random.IntN(3)])
				delete(inFlight, uid)
			}
		case 6:
			if uid, ok := one(waiting); ok {
				q.Delete(uid)
				delete(waiting, uid)
			}
		case 7:
			q.MoveAllToActiveOrBackoffQueue(podGone())
			time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
		}
		check(step)
	}
	for uid := range inFlight {
		q.AddUnschedulable(uid, fitFailure)
		delete(inFlight, uid)
	}
	for range 3 {
		time.Sleep(DefaultFlushAfter + time.Minute)
		for pod := pop(t, q); pod != nil; pod = pop(t, q) {
			delete(waiting, pod.Pod.UID)
			q.Done(pod.Pod.UID)
		}
	}
	if len(waiting) > 0 {
		t.Errorf("%d pods were never served again", len(waiting))
	}
	wantEmpty(t, q)
}
