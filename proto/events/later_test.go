package events

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
)

func TestWhatMayWaitTakesItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := true
		r := NewRecorder(nil, Options{Component: "scheduler", Host: "host", Busy: func() bool { return busy }}, clock.RealClock{}, zap.NewNop())
		later := func(name string) { r.Laterf(pod(name), corev1.EventTypeNormal, "Scheduled", "to %s", "n1") }
		next := func(name string, wait time.Duration) {
			t.Helper()
			began := time.Now()
			event, err := r.next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if event.InvolvedObject.Name != name || time.Since(began) != wait {
				t.Fatalf("the event about %s was next after %v, want %s after %v", event.InvolvedObject.Name, time.Since(began), name, wait)
			}
		}
		later("a")
		happened := time.Now()
		later("b")
		later("c")
		r.Event(pod("urgent"), corev1.EventTypeWarning, "FailedScheduling", "no room")
		next("urgent", 0)
		next("a", delayedInterval)
		busy = false
		event, err := r.next(t.Context())
		if err != nil || event.InvolvedObject.Name != "b" || event.Message != "to n1" || !event.FirstTimestamp.Time.Equal(happened) ||
			event.Source.Component != "scheduler" {
			t.Errorf("sent %+v (%v), which is not what was told", event, err)
		}
		busy = true
		for i := range maxDelayed {
			later(fmt.Sprint(i)) // there is no room for the last one
		}
		next(fmt.Sprint(maxDelayed-1), 0)
		next("c", 0) // more wait than should
		for range maxDelayed / 2 {
			if _, err := r.next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		next(fmt.Sprint(maxDelayed/2), delayedInterval)
	})
}

// TestAProgramThatIsBusyForLong: all events are sent after LongestWait, however
// many there are.
func TestAProgramThatIsBusyForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRecorder(nil, Options{Busy: func() bool { return true }, LongestWait: 2 * delayedInterval}, clock.RealClock{}, zap.NewNop())
		began := time.Now()
		for i := range 100 {
			r.Laterf(pod(fmt.Sprint(i)), corev1.EventTypeNormal, "Started", "started")
		}
		for range 100 {
			if _, err := r.next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if waited := time.Since(began); waited != 2*delayedInterval {
			t.Errorf("the last one was told after %v, want %v", waited, 2*delayedInterval)
		}
	})
}

// TestWhatMayWaitIsToldWhenTheProgramRests: as soon as it says so, and not
// because it says so while it is busy.
func TestWhatMayWaitIsToldWhenTheProgramRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var busy atomic.Bool
		busy.Store(true)
		r := NewRecorder(nil, Options{Component: "kubelet", Host: "node-1", Busy: busy.Load}, clock.RealClock{}, zap.NewNop())
		r.Rested() // nothing waits
		r.ContainerLaterf(pod("a"), "spec.containers{c}", corev1.EventTypeNormal, "Started", "Container %s", "started")
		began := time.Now()
		told := make(chan time.Duration)
		go func() {
			event, err := r.next(t.Context())
			if err != nil || event.InvolvedObject.FieldPath != "spec.containers{c}" || event.Message != "Container started" {
				t.Errorf("sent %+v (%v), which is not what was told", event, err)
			}
			told <- time.Since(began)
		}()
		time.Sleep(delayedInterval / 4)
		r.Rested()
		time.Sleep(delayedInterval / 4)
		busy.Store(false)
		r.Rested()
		if waited := <-told; waited != delayedInterval/2 {
			t.Errorf("it was sent after %v, want %v", waited, delayedInterval/2)
		}
		// Repeated calls do not make anything wait longer.
		busy.Store(true)
		r.Laterf(pod("b"), corev1.EventTypeNormal, "Started", "b")
		began = time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for ctx.Err() == nil {
				r.Rested()
				time.Sleep(delayedInterval / 4)
			}
		}()
		if _, err := r.next(ctx); err != nil || time.Since(began) != delayedInterval {
			t.Errorf("it was sent after %v (%v), want %v", time.Since(began), err, delayedInterval)
		}
		cancel()
		<-ended
	})
}
