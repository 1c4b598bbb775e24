package podkiller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/kubelet/internal/podworker"
	"kctl/proto/core"
)

// heard has what workers that do nothing were asked last.
type heard struct{ kill *podworker.KillOptions }

func (h *heard) Update(u podworker.Update) { h.kill = u.Kill }
func (*heard) Of(pod *core.Pod) *core.Pod  { return pod }
func (h *heard) status(before corev1.PodPhase) core.PodStatus {
	status := core.PodStatus{Phase: before}
	for range 2 { // as the worker asks again and again
		h.kill.Status(&status)
	}
	return status
}

// What a pod's status says of its end depends on how its containers end, and on why they are ended.
func TestWhatAPodsStatusSaysOfItsEnd(t *testing.T) {
	const running, succeeded, failed = corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed
	evicted := Termination{Reason: Evicted, Message: "short", Disrupted: "short"}
	overLimit := Termination{Reason: Evicted, Message: "too much"}
	shutDown := Termination{Reason: "Terminated", Disrupted: "shutdown", KeepsSuccess: true}
	preempted := Termination{Reason: Preempting, Disrupted: "critical", AsItEnds: true}
	for name, c := range map[string]struct {
		end    Termination
		before corev1.PodPhase
		phase  corev1.PodPhase
		reason string
		target bool // it has the condition DisruptionTarget
	}{
		"evicted":                            {evicted, running, failed, Evicted, true},
		"evicted after it succeeded":         {evicted, succeeded, failed, Evicted, true},
		"evicted for what it used":           {overLimit, running, failed, Evicted, false},
		"shut down":                          {shutDown, running, failed, "Terminated", true},
		"shut down after it succeeded":       {shutDown, succeeded, succeeded, "", false},
		"preempted, and still ending":        {preempted, running, running, "", false},
		"preempted, and its containers fail": {preempted, failed, failed, Preempting, true},
		"preempted, and it ends well":        {preempted, succeeded, succeeded, "", true},
	} {
		workers := &heard{}
		New(workers, workers, clocktesting.NewFakePassiveClock(time.Now())).Terminate(&core.Pod{}, c.end)
		status := workers.status(c.before)
		if status.Phase != c.phase || status.Reason != c.reason {
			t.Errorf("%s: %s, %q", name, status.Phase, status.Reason)
		}
		if conditions := status.Conditions; len(conditions) > 1 || c.target != (len(conditions) == 1 && conditions[0].Message == c.end.Disrupted) {
			t.Errorf("%s: %+v", name, conditions)
		}
	}
}
