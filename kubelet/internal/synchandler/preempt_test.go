package synchandler

import (
	"testing"
	"time"
)

func TestHowLongOthersAreWaitedFor(t *testing.T) {
	pod := podNamed("other", "")
	for grace, want := range map[int64]time.Duration{2: 10 * time.Second, 30: 45 * time.Second} {
		pod.Spec.TerminationGracePeriodSeconds = &grace
		if patience := preemptionTimeout(pod); patience != want {
			t.Errorf("a pod that has %ds is waited for %v", grace, patience)
		}
	}
}
