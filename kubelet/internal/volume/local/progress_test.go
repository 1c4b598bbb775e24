package local

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"kctl/proto/core"
	"kctl/proto/eventually"
)

// A pod that waits long for the group of a large volume says so, how far it is, and no more once it is done.
func TestALongChangeOfTheGroupIsTold(t *testing.T) {
	clock, told := clocktesting.NewFakeClock(time.Now()), make(chan string, 3)
	v := Volume{Name: "pv", Clock: clock, Warn: func(reason, message string) { told <- reason + ": " + message }}
	var done atomic.Int64
	pod := &core.Pod{}
	pod.UID = "1-2"
	end := v.tellProgress(t.Context(), pod, &done)
	const what = "VolumePermissionChangeInProgress: Setting volume ownership for 1-2/volumes/kubernetes.io~local-volume/pv"
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{longChange, " is taking longer than expected, consider using OnRootMismatch - "}, {progressInterval, ", processed 7 files."}} {
		eventually.Holds(t, "a wait", clock.HasWaiters)
		if clock.Step(step.after - 1); len(told) > 0 {
			t.Errorf("told too early: %s", <-told)
		}
		done.Store(7)
		clock.Step(1)
		if got := <-told; !strings.HasPrefix(got, what+step.want) {
			t.Errorf("got  %s\nwant %s%s", got, what, step.want)
		}
	}
	end()
	if clock.Step(progressInterval); clock.HasWaiters() || len(told) > 0 {
		t.Error("it goes on after the end")
	}
}
