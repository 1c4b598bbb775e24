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
	"kctl/scheduler/internal/permit"
	"kctl/scheduler/internal/queue"
)

// attempt is the state of one attempt at a pod.
type attempt struct {
	*run
	queued  *framework.QueuedPod
	profile *framework.Profile
	state   *framework.CycleState
	begun   time.Time
	node    string
	// prepared says that PreBind has been called.
	prepared bool
	// nominated says that people were told where the pod will be.
	nominated bool
}

// attempt tries to place one pod: it ends with the pod failed, or handed to a
// goroutine that binds it.
func (r *run) attempt(ctx context.Context, queued *framework.QueuedPod) {
	pod := queued.Pod
	_, current := r.Queue.Current(pod.UID)
	// An event from before the Binding can put a pod back that the queue was done with.
	if !current || pod.DeletionTimestamp != nil || r.Cache.Has(pod.UID) {
		r.Queue.Done(pod.UID)
		return
	}
	profile := r.Profiles[pod.Spec.SchedulerName]
	a := &attempt{run: r, queued: queued, profile: profile, state: framework.NewCycleState(queued.Relay), begun: r.Clock.Now()}
	if a.begun.Sub(r.measured) >= measureEvery {
		r.measured = a.begun
		a.state.Observer = metrics.Plugins{Metrics: r.Metrics, Clock: r.Clock}
	}
	placement, err := a.place(ctx)
	if err != nil {
		a.failed(err)
		return
	}
	if err := r.Cache.Assume(queued.PodInfo, placement.Node); err != nil {
		// The watch showed the pod on a node in this very moment.
		r.Logger.Debug("pod has a node already", daemon.PodFields(queued.Pod), zap.Error(err))
		r.Queue.Done(pod.UID)
		return
	}
	r.Nominations.Taken(pod.UID, placement.Node) // it counts on the node by now
	a.node = placement.Node
	a.stamp(relay.SchedulerAssumed)
	waits, err := a.reserve(ctx)
	switch {
	case err != nil:
		a.undo(ctx)
		a.failed(err)
	case len(waits) > 0:
		a.nominate()
		waiting := r.Waiting.Add(pod, a.node, waits)
		r.bindings.Go(func() { a.await(ctx, waiting) })
	case a.profile.PreBindTakesLong(a.state):
		a.nominate()
		r.bindings.Go(func() { a.prepareThenLaunch(ctx) })
	default:
		a.launch(ctx)
	}
}

// nominate tells people where the pod will be.
func (a *attempt) nominate() {
	a.nominated = true
	a.Reporter.Nominated(a.queued.Pod, a.node)
}

func (a *attempt) place(ctx context.Context) (Placement, error) {
	a.Cache.Update(a.placer.snapshot)
	placement, err := a.placer.place(ctx, a.profile, a.state, a.queued.PodInfo, a.stamp)
	var fit *framework.FitError
	if errors.As(err, &fit) {
		err = a.makeRoom(ctx, fit)
	}
	a.Metrics.AlgorithmDuration.Observe(a.Clock.Since(a.begun).Seconds())
	if err == nil {
		a.Logger.Debug("node chosen", daemon.PodFields(a.queued.Pod), zap.String("node", placement.Node),
			zap.Int("evaluated", placement.Evaluated), zap.Int("feasible", placement.Feasible))
	}
	return placement, err
}

// makeRoom calls the PostFilter plugins to look for pods to evict. The pod fails
// either way, and is tried again when they are gone.
func (a *attempt) makeRoom(ctx context.Context, fit *framework.FitError) error {
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
		return status.Err()
	}
	return fit
}

// reserve runs the plugins between the choice of a node and the binding, and
// returns those that make the pod wait.
func (a *attempt) reserve(ctx context.Context) (map[string]time.Duration, error) {
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
		return nil, a.rejection(status)
	}
	return waits, nil
}

// await waits until the plugins allow the pod; only then does it count towards
// the limit on concurrent bindings.
func (a *attempt) await(ctx context.Context, waiting *permit.Pod) {
	begun := a.Clock.Now()
	status := waiting.Wait(ctx)
	a.Metrics.Permitted(status.Code().String(), a.Clock.Since(begun))
	switch {
	case ctx.Err() != nil:
		a.leave(ctx)
	case status.IsSuccess() && a.profile.PreBindTakesLong(a.state):
		a.prepareThenLaunch(ctx)
	case status.IsSuccess():
		a.launch(ctx)
	default:
		a.undo(ctx)
		a.failed(a.rejection(status))
	}
}

// rejection turns a plugin's refusal after a node was chosen into an error.
func (a *attempt) rejection(status *framework.Status) error {
	if !status.IsRejected() {
		return status.Err()
	}
	fit := framework.NewFitError(1)
	fit.Refuse(status, 1)
	return fit
}

// undo takes the assumption back. Other pods may fit where this one counted.
func (a *attempt) undo(ctx context.Context) {
	begun := a.Clock.Now()
	a.profile.RunUnreserve(ctx, a.state, a.queued.PodInfo, a.node)
	a.points.observe(a.profile, "Unreserve", nil, begun)
	if a.Cache.Forget(a.queued.Pod.UID) {
		a.Queue.Move(framework.Event{
			Resource: framework.AssignedPodEvent, Action: framework.Delete, OldPod: a.queued.Pod,
		})
	}
}

// failed gives the pod back to the queue and says why.
func (a *attempt) failed(err error) {
	pod := a.queued.Pod
	var fit *framework.FitError
	result := metrics.ResultError
	failure := queue.Failure{Error: true}
	switch {
	case errors.As(err, &fit):
		result, failure = metrics.ResultUnschedulable, queue.Failure{Plugins: fit.PluginNames(), Pending: fit.PendingNames()}
	case errors.Is(err, framework.ErrNoNodes):
		result, failure = metrics.ResultUnschedulable, queue.Failure{}
	}
	a.Metrics.Attempt(result, a.profile.SchedulerName, a.Clock.Since(a.begun))
	current, waits := a.Queue.Current(pod.UID)
	a.Queue.Failed(pod.UID, failure)
	if !waits {
		return
	}
	if failure.Error {
		a.Logger.Warn("pod could not be scheduled, will try again",
			daemon.PodFields(a.queued.Pod), zap.Error(err))
	} else {
		a.Logger.Info("no node for pod", daemon.PodFields(a.queued.Pod), zap.String("reason", err.Error()))
	}
	nominated := a.Nominations.Of(pod.UID)
	if a.nominated { // which the watch may not have shown yet, and is over
		told := *current
		told.Status.NominatedNodeName = a.node
		current, nominated = &told, ""
	}
	a.Reporter.Unscheduled(current, err, nominated)
}

// leave gives the pod to the next leader.
func (a *attempt) leave(ctx context.Context) {
	a.undo(ctx)
	a.Queue.Failed(a.queued.Pod.UID, queue.Failure{Error: true})
}

func (a *attempt) stamp(hop relay.Hop) { a.queued.Relay.Stamp(hop, a.Clock.Now()) }
