package lifecycle

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"kctl/proto/core"
)

// A critical pod does not wait for ever for one that does not end, nor once it is to
// end itself.
func TestHowLongCriticalPodsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Clock: clock.RealClock{}, Events: &eventLog{}})
		pod := &core.Pod{}
		pod.UID = "critical"
		l.WaitForVictims(pod.UID, []Victim{{Pod: &core.Pod{}, Done: make(chan struct{}), Until: time.Now().Add(10 * time.Second)}})
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.waitForVictims(ctx, pod); err == nil || time.Since(start) != time.Second {
			t.Errorf("a pod that is to end waited for %v: %v", time.Since(start), err)
		}
		for range 2 { // the second time, there is nothing to wait for
			if err := l.waitForVictims(t.Context(), pod); err != nil || time.Since(start) != 10*time.Second {
				t.Errorf("waited for %v: %v", time.Since(start), err)
			}
		}
	})
}
