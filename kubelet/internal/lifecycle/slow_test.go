package lifecycle

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/proto/core"
	"kctl/proto/eventually"
)

// A disk that hangs holds a pod up without an error: its owner is told, once.
func TestADiskThatHangs(t *testing.T) {
	clock, events := clocktesting.NewFakeClock(time.Now()), &eventLog{}
	l := New(Options{RootDir: "/r", Clock: clock, Events: events})
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	if err := l.onDisk(pod, func() error { return nil }); err != nil || clock.HasWaiters() {
		t.Fatalf("a disk that answers: %v, a timer runs on: %v", err, clock.HasWaiters())
	}
	answers, done := make(chan error), make(chan error)
	go func() { done <- l.onDisk(pod, func() error { return <-answers }) }()
	eventually.Holds(t, "a timer", clock.HasWaiters)
	clock.Step(slowDisk)
	eventually.Holds(t, "the event", func() bool {
		return events.has("FailedMount: the directory of the pod, /r/pods/u, could not be made within 30s: does its disk hang?")
	})
	answers <- nil
	if err := <-done; err != nil || len(events.lines) != 1 {
		t.Errorf("a disk that answers again: %v, %q", err, events.lines)
	}
}
