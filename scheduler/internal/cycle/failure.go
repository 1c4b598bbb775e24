package cycle

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"kctl/proto/daemon"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/metrics"
	"kctl/scheduler/internal/queue"
)

// unreserve takes the assumption back. Other pods may fit where this one counted.
func (a *attempt) unreserve(ctx context.Context) {
	begun := a.Clock.Now()
	a.profile.RunUnreserve(ctx, a.state, a.queued.PodInfo, a.node)
	a.points.observe(a.profile, "Unreserve", nil, begun)
	if a.Cache.Forget(a.queued.Pod.UID) {
		a.Queue.MoveAllToActiveOrBackoffQueue(framework.ClusterEvent{
			Resource: framework.AssignedPodEvent, ActionType: framework.Delete, OldPod: a.queued.Pod,
		})
	}
}

// rejection turns a plugin's refusal after a node was chosen into an error.
func rejection(status *framework.Status) error {
	if !status.IsRejected() {
		return status.Err()
	}
	fit := framework.NewFitError(1)
	fit.Refuse(status, 1)
	return fit
}

// handleFailure gives the pod back to the queue and says why.
func (a *attempt) handleFailure(err error) {
	pod := a.queued.Pod
	var fit *framework.FitError
	result := metrics.ResultError
	failure := queue.Failure{Error: true}
	switch {
	case errors.As(err, &fit):
		result, failure = metrics.ResultUnschedulable, queue.Failure{Plugins: fit.PluginNames(), Pending: fit.PendingNames(), Error: fit.Failed}
	case errors.Is(err, framework.ErrNoNodes):
		result, failure = metrics.ResultUnschedulable, queue.Failure{}
	}
	a.Metrics.Attempt(result, a.profile.SchedulerName, a.Clock.Since(a.begun))
	current, waits := a.Queue.Current(pod.UID)
	a.Queue.AddUnschedulable(pod.UID, failure)
	if !waits {
		return
	}
	if failure.Error {
		a.Logger.Warn("pod could not be scheduled, will try again",
			daemon.PodFields(a.queued.Pod), zap.Error(err))
	} else {
		a.Logger.Info("no node for pod", daemon.PodFields(a.queued.Pod), zap.String("reason", err.Error()))
	}
	nominated := a.Nominator.Of(pod.UID)
	if a.nominated { // which the watch may not have shown yet, and is over
		told := *current
		told.Status.NominatedNodeName = a.node
		current, nominated = &told, ""
	}
	a.Reporter.Unscheduled(current, err, nominated)
}

// handleBindFailure is handleFailure, but tells people nothing if the pod's owner or another
// scheduler was quicker.
func (a *attempt) handleBindFailure(err error) {
	if errors.Is(err, errNotOurs) {
		a.Metrics.Attempt(metrics.ResultError, a.profile.SchedulerName, a.Clock.Since(a.begun))
		a.Logger.Info("binding came too late", daemon.PodFields(a.queued.Pod), zap.String("node", a.node), zap.Error(err))
		a.Queue.AddUnschedulable(a.queued.Pod.UID, queue.Failure{Error: true})
		return
	}
	a.handleFailure(err)
}

// abandon gives the pod to the next leader.
func (a *attempt) abandon(ctx context.Context) {
	a.unreserve(ctx)
	a.Queue.AddUnschedulable(a.queued.Pod.UID, queue.Failure{Error: true})
}
