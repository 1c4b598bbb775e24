package status

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/podactions"
	"kctl/proto/core"
)

// restartAll describes the progress of a pod that starts over because of how one of
// its containers ended (KEP-5532). Its condition exists from the first time on.
type restartAll struct {
	verdict
	there bool
	was   bool      // it was under way when the status was made last
	since time.Time // when the pod last started over
}

func restartOf(in Input) restartAll {
	a := restartAll{}
	if old := findCondition(in.Previous.Conditions, corev1.AllContainersRestarting); old != nil {
		a.there, a.was = true, old.Status == corev1.ConditionTrue
		a.since = old.LastTransitionTime.Time
		if a.was {
			a.since = in.Now
		}
	}
	if in.Terminal {
		return a
	}
	if ended := podactions.RestartsAll(in.Pod, in.Runtime); ended != nil {
		a.there, a.ok, a.reason = true, true, "ContainerExited"
		a.message = fmt.Sprintf("Container %s exited with code %d, triggering pod restart", ended.Name, ended.ExitCode)
	}
	return a
}

// forgotten is the status of a container that was removed so that the pod can
// start over: it waits for its next run.
func forgotten(in Input, waiting core.ContainerStatus, old *core.ContainerStatus) core.ContainerStatus {
	ended := old.State.Terminated
	if ended == nil {
		ended = lost(old.ContainerID, "The container was ended with all others of the pod")
		ended.FinishedAt = apiTime(in.Now)
	}
	waiting.LastTerminationState.Terminated = ended
	waiting.RestartCount = old.RestartCount + 1
	return waiting
}

// before tells whether a waiting container ended before the pod started over.
func (a restartAll) before(status *core.ContainerStatus) bool {
	ended := status.LastTerminationState.Terminated
	return a.there && status.State.Waiting != nil && ended != nil && !ended.FinishedAt.IsZero() && !ended.FinishedAt.After(a.since)
}
