package cycle

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/scheduler/internal/metrics"
	"kctl/scheduler/internal/queue"
)

// errNotOurs says that the pod is gone or has another node.
var errNotOurs = errors.New("the pod is gone or was bound by another")

// lostAnswer finds out what a failed binding really did. A request whose answer
// got lost may have been carried out; to forget such a pod would count its node
// as emptier than it is until the watch says otherwise.
func (a *attempt) lostAnswer(ctx context.Context, cause error) (bound bool, err error) {
	if apierrors.IsConflict(cause) || apierrors.IsNotFound(cause) {
		return false, errors.Join(errNotOurs, cause)
	}
	if refusedForSure(cause) {
		return false, cause
	}
	pod := a.queued.Pod
	stored, err := a.Pods.Pod(ctx, pod.Namespace, pod.Name)
	switch {
	case apierrors.IsNotFound(err):
		return false, errors.Join(errNotOurs, cause)
	case err != nil:
		return false, fmt.Errorf("%w (and the pod could not be read: %w)", cause, err)
	case stored.UID != pod.UID:
		return false, errors.Join(errNotOurs, cause)
	case stored.Spec.NodeName == a.node:
		return true, nil
	case stored.Spec.NodeName != "":
		return false, errors.Join(errNotOurs, cause)
	}
	return false, cause
}

// refusedForSure reports whether the server answered that it did nothing.
func refusedForSure(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500
}

// bindFailed is failed, without words to people where the pod's owner or
// another scheduler was quicker.
func (a *attempt) bindFailed(err error) {
	if errors.Is(err, errNotOurs) {
		a.Metrics.Attempt(metrics.ResultError, a.profile.SchedulerName, a.Clock.Since(a.begun))
		a.Logger.Info("binding came too late", zap.String("pod", a.queued.Key()), zap.String("node", a.node), zap.Error(err))
		a.Queue.Failed(a.queued.Pod.UID, queue.Failure{Error: true})
		return
	}
	a.failed(fmt.Errorf("binding rejected: %w", err))
}
