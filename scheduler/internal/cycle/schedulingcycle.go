package cycle

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"kctl/proto/daemon"
	"kctl/proto/relay"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/metrics"
)

// attempt is the state of one attempt at a pod.
type attempt struct {
	*run
	queued  *framework.QueuedPodInfo
	profile *framework.Profile
	state   *framework.CycleState
	begun   time.Time
	node    string
	// preBound says that PreBind has been called.
	preBound bool
	// nominated says that people were told where the pod will be.
	nominated bool
	// inSlot says that it has one of the slots.
	inSlot bool
}

// scheduleOne tries to place one pod: it ends with the pod failed, or in its binding
// cycle.
func (r *run) scheduleOne(ctx context.Context, queued *framework.QueuedPodInfo) {
	pod := queued.Pod
	_, current := r.Queue.Current(pod.UID)
	// An event from before the Binding can put a pod back that the queue was done with.
	if !current || pod.DeletionTimestamp != nil || r.Cache.Has(pod.UID) {
		r.Queue.Done(pod.UID)
		return
	}
	a := r.newAttempt(queued)
	if waits, assumed := a.schedulingCycle(ctx); assumed {
		a.startBindingCycle(ctx, waits)
	}
}

func (r *run) newAttempt(queued *framework.QueuedPodInfo) *attempt {
	profile := r.Profiles[queued.Pod.Spec.SchedulerName]
	a := &attempt{run: r, queued: queued, profile: profile, state: framework.NewCycleState(queued.Stamps), begun: r.Clock.Now()}
	if a.begun.Sub(r.measured) >= measureEvery {
		r.measured = a.begun
		a.state.Observer = metrics.Plugins{Metrics: r.Metrics, Clock: r.Clock}
	}
	return a
}

// schedulingCycle finds a node and assumes the pod there; from then on it counts. It
// returns the Permit plugins that make the pod wait. If it could not assume the pod, it
// has given the pod back to the queue.
func (a *attempt) schedulingCycle(ctx context.Context) (waits map[string]time.Duration, assumed bool) {
	pod := a.queued.Pod
	result, err := a.findNode(ctx)
	if err != nil {
		a.handleFailure(err)
		return nil, false
	}
	if err := a.Cache.Assume(a.queued.PodInfo, result.Node); err != nil {
		// The watch showed the pod on a node in this very moment.
		a.Logger.Debug("pod has a node already", daemon.PodFields(pod), zap.Error(err))
		a.Queue.Done(pod.UID)
		return nil, false
	}
	a.Nominator.Taken(pod.UID, result.Node) // it counts on the node by now
	a.node = result.Node
	a.stamp(relay.SchedulerAssumed)
	if waits, err = a.reserveAndPermit(ctx); err != nil {
		a.unreserve(ctx)
		a.handleFailure(err)
		return nil, false
	}
	return waits, true
}

// findNode chooses a node by the cluster as it is now; if none is feasible, PostFilter looks for room.
func (a *attempt) findNode(ctx context.Context) (ScheduleResult, error) {
	a.Cache.Update(a.placer.snapshot)
	result, err := a.placer.schedulePod(ctx, a.profile, a.state, a.queued.PodInfo, a.stamp)
	if fit, ok := errors.AsType[*framework.FitError](err); ok {
		err = a.runPostFilter(ctx, fit)
	}
	a.Metrics.AlgorithmDuration.Observe(a.Clock.Since(a.begun).Seconds())
	if err == nil {
		a.Logger.Debug("node chosen", daemon.PodFields(a.queued.Pod), zap.String("node", result.Node),
			zap.Int("evaluated", result.EvaluatedNodes), zap.Int("feasible", result.FeasibleNodes))
	}
	return result, err
}

// runPostFilter calls the PostFilter plugins to look for pods to evict. The pod fails
// either way, and is tried again when they are gone.
func (a *attempt) runPostFilter(ctx context.Context, fit *framework.FitError) error {
	begun := a.Clock.Now()
	node, status := a.profile.RunPostFilter(ctx, a.state, a.queued.PodInfo, framework.Refused{Nodes: fit.Resolvable})
	a.points.observe(a.profile, "PostFilter", status, begun)
	switch {
	case node != "":
		fit.PostFilterMessage = status.Message()
		a.Logger.Info("pods have to leave for another", daemon.PodFields(a.queued.Pod), zap.String("node", node))
	case status.IsRejected():
		fit.PostFilterMessage = status.Message()
	case !status.IsSuccess():
		// The nodes refused the pod all the same, and autoscalers want to know.
		fit.PostFilterMessage, fit.Failed = status.Message(), true
	}
	return fit
}

// reserveAndPermit runs the plugins between the choice of a node and the binding, and
// returns those that make the pod wait.
func (a *attempt) reserveAndPermit(ctx context.Context) (map[string]time.Duration, error) {
	begun := a.Clock.Now()
	status := a.profile.RunReserve(ctx, a.state, a.queued.PodInfo, a.node)
	a.points.observe(a.profile, "Reserve", status, begun)
	var waits map[string]time.Duration
	if status.IsSuccess() {
		begun = a.Clock.Now()
		waits, status = a.profile.RunPermit(ctx, a.state, a.queued.PodInfo, a.node)
		a.points.observe(a.profile, "Permit", status, begun)
	}
	if !status.IsSuccess() {
		return nil, rejection(status)
	}
	return waits, nil
}

func (a *attempt) stamp(hop relay.Hop) { a.queued.Stamps.Stamp(hop, a.Clock.Now()) }
