package cycle

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/relay"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/cache"
	"kctl/scheduler/internal/extender"
	"kctl/scheduler/internal/metrics"
	"kctl/scheduler/internal/nominate"
	"kctl/scheduler/internal/permit"
	"kctl/scheduler/internal/queue"
)

// Queue gives the pods and takes them back.
type Queue interface {
	Pop(ctx context.Context) (*framework.QueuedPod, error)
	Current(uid types.UID) (*core.Pod, bool)
	Left(uid types.UID) <-chan struct{}
	Done(uid types.UID)
	Failed(uid types.UID, failure queue.Failure)
	Move(event framework.Event)
}

// Cache holds the nodes and takes assumptions.
type Cache interface {
	Update(snapshot *cache.Snapshot)
	Assume(pod *framework.PodInfo, node string) error
	FinishBinding(uid types.UID)
	Forget(uid types.UID) bool
	Bound(uid types.UID) string
	HasNode(name string) bool
}

// Reporter tells people what became of a pod.
type Reporter interface {
	Scheduled(pod *core.Pod, node string)
	// Unscheduled is for an attempt that found no node (err tells why) or
	// failed. nominated is the node on which others make room; empty if none.
	Unscheduled(pod *core.Pod, err error, nominated string)
}

// PodReader reads a pod from the API, for when the answer to a binding got lost.
type PodReader interface {
	Pod(ctx context.Context, namespace, name string) (*core.Pod, error)
}

const (
	// maxBindings bounds the bindings under way.
	maxBindings = 64
	// bindTimeout bounds what plugins do before and after a binding, and the wait for
	// one answer to it.
	bindTimeout = 30 * time.Second
	// measureEvery is how long after one attempt that had each plugin measured
	// the next one has: it takes about as long as the attempt itself.
	measureEvery = 100 * time.Millisecond
	// bindGrace is what bindings under way are given when the scheduler stops.
	bindGrace = 5 * time.Second
)

// Scheduler runs the cycle.
type Scheduler struct {
	Profiles map[string]*framework.Profile
	Queue    Queue
	Cache    Cache
	Reporter Reporter
	Pods     PodReader
	// Nominations are the promises of room that attempts keep.
	Nominations *nominate.Nominations
	// Waiting are the pods that Permit plugins hold back.
	Waiting *permit.Waiting
	// Extenders may be nil.
	Extenders *extender.Chain
	Clock     clock.Clock
	Logger    *zap.Logger
	Metrics   *metrics.Metrics
}

// Run places pods until ctx ends, then waits for the bindings under way and
// returns ctx's error.
func (s *Scheduler) Run(ctx context.Context) error {
	bindCtx, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	measured := newPoints(s.Metrics, s.Clock)
	r := &run{Scheduler: s, points: measured, placer: newPlacer(s.Nominations, s.Extenders, measured), bindCtx: bindCtx, slots: make(chan struct{}, maxBindings)}
	for {
		pod, err := s.Queue.Pop(ctx)
		if err != nil {
			r.drain(abandon)
			return err
		}
		r.attempt(ctx, pod)
	}
}

// run is the state of one Run.
type run struct {
	*Scheduler
	placer   *placer
	points   *points
	measured time.Time // when an attempt last had each plugin measured
	bindCtx  context.Context
	slots    chan struct{}  // one for each binding under way
	bindings sync.WaitGroup // and pods that wait to be permitted
}

// drain waits for the bindings under way; after the grace it has them given up.
func (r *run) drain(abandon context.CancelFunc) {
	done := make(chan struct{})
	go func() {
		r.bindings.Wait()
		close(done)
	}()
	grace := r.Clock.NewTimer(bindGrace)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C():
		abandon()
		<-done
	}
}

// attempt is one pod's try: it ends with the pod failed, or in the hands of a
// goroutine that binds it.
func (r *run) attempt(ctx context.Context, queued *framework.QueuedPod) {
	pod := queued.Pod
	if _, waits := r.Queue.Current(pod.UID); !waits || pod.DeletionTimestamp != nil {
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
		r.Logger.Debug("pod has a node already", zap.String("pod", queued.Key()), zap.Error(err))
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
		waiting := r.Waiting.Add(pod, a.node, waits)
		r.bindings.Go(func() { a.await(ctx, waiting) })
	case a.profile.PreBindTakesLong(a.state):
		r.bindings.Go(func() { a.prepareThenLaunch(ctx) })
	default:
		a.launch(ctx)
	}
}

// attempt is what one try at a pod knows.
type attempt struct {
	*run
	queued  *framework.QueuedPod
	profile *framework.Profile
	state   *framework.CycleState
	begun   time.Time
	node    string
	// prepared says that PreBind has been called.
	prepared bool
}

// reserve asks the plugins that come between the choice of a node and the
// binding, and returns those that have the pod wait.
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

// await has the pod wait for the plugins' word; it takes part in the bound on
// bindings only when it has it.
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

// inTime is for one step of a binding.
func (a *attempt) inTime() (context.Context, context.CancelFunc) {
	return context.WithTimeout(a.bindCtx, bindTimeout)
}

// prepareThenLaunch has the PreBind plugins take the time they need, without a
// slot of those that are bound.
func (a *attempt) prepareThenLaunch(ctx context.Context) {
	if a.prepare(ctx) {
		a.launch(ctx)
	}
}

// prepare calls the PreBind plugins; where they fail, the attempt has failed.
func (a *attempt) prepare(ctx context.Context) bool {
	if a.prepared {
		return true
	}
	a.prepared = true
	begun := a.Clock.Now()
	status := a.profile.RunPreBind(ctx, a.state, a.queued.PodInfo, a.node)
	a.points.observe(a.profile, "PreBind", status, begun)
	if status.IsSuccess() {
		return true
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		a.leave(ctx)
		return false
	}
	a.undo(ctx)
	a.failed(a.rejection(status))
	return false
}

// launch has the pod bound beside the next attempts, when there is a slot.
func (a *attempt) launch(ctx context.Context) {
	select {
	case a.slots <- struct{}{}:
	case <-ctx.Done():
		a.leave(ctx)
		return
	}
	a.bindings.Go(func() {
		a.Metrics.Binding.Inc()
		defer func() {
			a.Metrics.Binding.Dec()
			<-a.slots
		}()
		a.bind(ctx)
	})
}

// leave gives the pod to the next leader.
func (a *attempt) leave(ctx context.Context) {
	a.undo(ctx)
	a.Queue.Failed(a.queued.Pod.UID, queue.Failure{Error: true})
}

func (a *attempt) stamp(hop relay.Hop) { a.queued.Relay.Stamp(hop, a.Clock.Now()) }

func (a *attempt) place(ctx context.Context) (Placement, error) {
	a.Cache.Update(a.placer.snapshot)
	placement, err := a.placer.place(ctx, a.profile, a.state, a.queued.PodInfo, a.stamp)
	var fit *framework.FitError
	if errors.As(err, &fit) {
		err = a.makeRoom(ctx, fit)
	}
	a.Metrics.AlgorithmDuration.Observe(a.Clock.Since(a.begun).Seconds())
	if err == nil {
		a.Logger.Debug("node chosen", zap.String("pod", a.queued.Key()), zap.String("node", placement.Node),
			zap.Int("evaluated", placement.Evaluated), zap.Int("feasible", placement.Feasible))
	}
	return placement, err
}

// makeRoom has the PostFilter plugins look for pods that could go. The pod fails
// either way, and is tried again when they have gone.
func (a *attempt) makeRoom(ctx context.Context, fit *framework.FitError) error {
	begun := a.Clock.Now()
	node, status := a.profile.RunPostFilter(ctx, a.state, a.queued.PodInfo, framework.Refused{Nodes: fit.Resolvable})
	a.points.observe(a.profile, "PostFilter", status, begun)
	switch {
	case node != "":
		fit.PostFilterMessage = status.Message()
		a.Logger.Info("pods have to leave for another", zap.String("pod", a.queued.Key()), zap.String("node", node))
	case status.IsRejected():
		fit.PostFilterMessage = status.Message()
	case !status.IsSuccess():
		return status.Err()
	}
	return fit
}

// rejection makes an error of a plugin's refusal after a node was chosen.
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
			zap.String("pod", a.queued.Key()), zap.String("uid", string(pod.UID)), zap.Error(err))
	} else {
		a.Logger.Info("no node for pod", zap.String("pod", a.queued.Key()), zap.String("reason", err.Error()))
	}
	a.Reporter.Unscheduled(current, err, a.Nominations.Of(pod.UID))
}

// bind ties the assumed pod to its node, or takes everything back. ctx ends when
// the scheduler is to end; what is under way then is given a little longer.
func (a *attempt) bind(ctx context.Context) {
	pod := a.queued.PodInfo
	inTime, cancel := a.inTime()
	defer cancel()
	if !a.prepare(inTime) {
		return
	}
	begun := a.Clock.Now()
	status, err := (*framework.Status)(nil), a.sendUntilKnown(ctx)
	if err != nil {
		status = framework.AsError(err)
	}
	a.points.observe(a.profile, "Bind", status, begun)
	switch {
	case errors.Is(err, errLeaving):
		a.leave(ctx)
		return
	case err != nil:
		a.undo(ctx)
		a.bindFailed(err)
		return
	}
	a.Cache.FinishBinding(pod.Pod.UID)
	a.Queue.Done(pod.Pod.UID)
	begun = a.Clock.Now()
	inTime, cancel = a.inTime()
	defer cancel()
	a.profile.RunPostBind(inTime, a.state, pod, a.node)
	a.points.observe(a.profile, "PostBind", nil, begun)
	a.Metrics.Scheduled(a.profile.SchedulerName, a.Clock.Since(a.begun), a.Clock.Since(a.queued.Added), a.queued.Attempts)
	if a.queued.Flushed {
		a.Metrics.AfterFlush()
	}
	a.Logger.Info("pod bound", zap.String("pod", a.queued.Key()), zap.String("node", a.node), zap.String("uid", string(pod.Pod.UID)))
	a.Reporter.Scheduled(pod.Pod, a.node)
}
