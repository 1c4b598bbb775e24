package cycle

import (
	"context"
	"errors"
	"net/http"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/proto/relay"
	"kctl/proto/rest"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/waitingpods"
)

// resend is the delay before a Binding without an answer is sent again. All of them
// keep their slots, so a server that is away gets about ten requests a second at
// most.
var resend = backoff.Policy{Initial: 100 * time.Millisecond, Max: 5 * time.Second, Jitter: 0.5}

// patience is how often a server is asked whose answers leave the outcome open.
const patience = 5

var (
	// errNotOurs says that the pod is gone or has another node.
	errNotOurs = errors.New("the pod was deleted, or bound by another scheduler")
	// errLeaving says that the scheduler ends before the outcome is known.
	errLeaving = errors.New("the scheduler is shutting down")
)

// startBindingCycle lets the assumed pod go on without the scheduling cycle, which turns
// to the next pod.
func (a *attempt) startBindingCycle(ctx context.Context, waits map[string]time.Duration) {
	if len(waits) > 0 {
		a.nominate()
		waiting := a.WaitingPods.Add(a.queued.Pod, a.node, waits)
		a.bindings.Go(func() { a.waitOnPermit(ctx, waiting) })
		return
	}
	a.stamp(relay.SchedulerPermitted)
	if a.profile.PreBindTakesLong(a.state) {
		a.nominate()
		a.bindings.Go(func() { a.preBindThenBind(ctx) })
	} else {
		a.bindInSlot(ctx)
	}
}

// nominate tells people where the pod will be.
func (a *attempt) nominate() {
	a.nominated = true
	a.Reporter.Nominated(a.queued.Pod, a.node)
}

// waitOnPermit waits until the plugins allow the pod; only then does it count towards
// the limit on concurrent bindings.
func (a *attempt) waitOnPermit(ctx context.Context, waiting *waitingpods.Pod) {
	begun := a.Clock.Now()
	status := waiting.Wait(ctx)
	a.Metrics.Permitted(status.Code().String(), a.Clock.Since(begun))
	switch {
	case ctx.Err() != nil:
		a.abandon(ctx)
		return
	case !status.IsSuccess():
		a.unreserve(ctx)
		a.handleFailure(rejection(status))
		return
	}
	a.stamp(relay.SchedulerPermitted)
	if a.profile.PreBindTakesLong(a.state) {
		a.preBindThenBind(ctx)
	} else {
		a.bindInSlot(ctx)
	}
}

// preBindThenBind lets the PreBind plugins take as long as they need, without
// occupying a binding slot.
func (a *attempt) preBindThenBind(ctx context.Context) {
	if a.preBind(ctx) {
		a.bindInSlot(ctx)
	}
}

// inTime is for one step of a binding.
func (a *attempt) inTime() (context.Context, context.CancelFunc) {
	return context.WithTimeout(a.bindCtx, bindTimeout)
}

// preBind calls the PreBind plugins; if they fail, or the pod has to give way to another
// meanwhile, the attempt has failed.
func (a *attempt) preBind(ctx context.Context) bool {
	if a.preBound {
		return true
	}
	a.preBound = true
	begun := a.Clock.Now()
	during, end := a.WaitingPods.PreBind(ctx, a.queued.Pod.UID)
	status := a.profile.RunPreBind(during, a.state, a.queued.PodInfo, a.node)
	if preempted := end(); preempted != nil {
		status = framework.AsError(preempted)
	}
	a.points.observe(a.profile, "PreBind", status, begun)
	if status.IsSuccess() {
		return true
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		a.abandon(ctx)
		return false
	}
	a.unreserve(ctx)
	a.handleFailure(rejection(status))
	return false
}

// bindInSlot binds the pod in the background, once there is a slot: if the server does not
// keep up, the scheduling cycle waits, so that what comes then is placed by its priority. It
// waits for no extender, which may handle only some pods: what one binds needs no slot.
func (a *attempt) bindInSlot(ctx context.Context) {
	if !a.Extenders.Binds(a.queued.Pod) {
		if !a.takeSlot(ctx) {
			return
		}
		a.inSlot = true
	}
	a.bindings.Go(func() {
		a.Metrics.Binding.Inc()
		defer func() {
			a.Metrics.Binding.Dec()
			if a.inSlot {
				<-a.slots
			}
		}()
		a.bind(ctx)
	})
}

// takeSlot waits for a slot. While a server that is away occupies all of them, the pod can
// be preempted, like one whose PreBind plugins run: it need not end for that. It returns
// false if the attempt is over.
func (a *attempt) takeSlot(ctx context.Context) bool {
	select {
	case a.slots <- struct{}{}:
		return true
	default:
	}
	during, end := a.WaitingPods.PreBind(ctx, a.queued.Pod.UID)
	taken := false
	select {
	case a.slots <- struct{}{}:
		taken = true
	case <-during.Done():
	}
	preempted := end()
	if taken && preempted == nil {
		return true
	}
	if taken {
		<-a.slots
	}
	if ctx.Err() != nil {
		a.abandon(ctx)
		return false
	}
	a.unreserve(ctx)
	a.handleFailure(preempted)
	return false
}

// bind binds the assumed pod to its node, or undoes everything. ctx ends when
// the scheduler is to stop; what is under way then gets a little longer.
func (a *attempt) bind(ctx context.Context) {
	pod := a.queued.PodInfo
	inTime, cancel := a.inTime()
	defer cancel()
	if !a.preBind(inTime) {
		return
	}
	begun := a.Clock.Now()
	err := a.bindUntilKnown(ctx)
	a.points.observe(a.profile, "Bind", framework.AsError(err), begun)
	switch {
	case errors.Is(err, errLeaving):
		a.abandon(ctx)
		return
	case err != nil:
		a.unreserve(ctx)
		a.handleBindFailure(err)
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
	a.Logger.Info("pod bound", daemon.PodFields(a.queued.Pod), zap.String("node", a.node))
	a.Reporter.Scheduled(pod.Pod, a.node)
}

// bindUntilKnown sends the Binding, again and again as long as its outcome is
// unknown: one whose answer was lost may still be carried out, even after the pod
// has been read without a node. If its room were given away before, the node could
// be overcommitted. The pod stays assumed meanwhile. It returns nil when the pod is
// bound to the node.
//
// An answer ends it, or the watch showing that the pod is gone or has a node. A
// Binding names the pod's UID, so it can't bind a later pod of the same name.
func (a *attempt) bindUntilKnown(ctx context.Context) error {
	var cause error
	again := true
	for tries := 1; ; tries++ {
		if !a.waitToLead(ctx) {
			return errLeaving
		}
		if again {
			if again, cause = a.bindOnce(ctx); cause == nil {
				return nil
			}
			again = again && a.Cache.HasNode(a.node)
		}
		if known, err := a.outcome(cause, tries, again); known {
			return err
		}
		if tries == 1 {
			a.Logger.Warn("a binding got no answer; sending it again until there is one",
				daemon.PodFields(a.queued.Pod), zap.String("node", a.node), zap.Error(cause))
		}
		wait := a.Clock.NewTimer(resend.Delay(tries))
		select {
		case <-wait.C():
		case <-a.Queue.Left(a.queued.Pod.UID):
			wait.Stop()
			if a.Cache.Bound(a.queued.Pod.UID) == a.node {
				return nil
			}
			return errors.Join(errNotOurs, cause)
		case <-ctx.Done():
			wait.Stop()
			return errLeaving
		}
	}
}

// waitToLead holds a Binding back while another scheduler may lead, whose pods this one
// does not count: a process that was suspended for longer than its lease resumes in the
// middle of its work, before it notices that it no longer leads. It returns false once
// ctx has ended.
func (a *attempt) waitToLead(ctx context.Context) bool {
	for a.Leading != nil && !a.Leading() {
		if backoff.Sleep(ctx, a.Clock, resend.Initial) != nil {
			return false
		}
	}
	return true
}

// bindOnce lets the extender that binds the pod do so, or else the plugins. Plugins
// may be asked again; an extender is not: the pod's next attempt asks it anew.
func (a *attempt) bindOnce(ctx context.Context) (again bool, err error) {
	if bound, err := a.extend(); bound || err != nil {
		return false, err
	}
	if !a.inSlot && !a.takeSlotAfterAll(ctx) {
		return true, ctx.Err()
	}
	inTime, cancel := a.inTime()
	defer cancel()
	return true, a.profile.RunBind(inTime, a.state, a.queued.PodInfo, a.node).Err()
}

func (a *attempt) extend() (bound bool, err error) {
	inTime, cancel := a.inTime()
	defer cancel()
	return a.Extenders.Bind(inTime, a.queued.Pod, a.node)
}

// takeSlotAfterAll is for a pod whose extender was passed over: the server is asked to bind it. It returns
// false once ctx has ended.
func (a *attempt) takeSlotAfterAll(ctx context.Context) bool {
	select {
	case a.slots <- struct{}{}:
		a.inSlot = true
		return a.waitToLead(ctx)
	case <-ctx.Done():
		return false
	}
}

// outcome says what became of a Binding that was answered by cause, if that can be
// known; nil if it was carried out. If an earlier answer was lost, a refusal says
// nothing about that earlier Binding.
func (a *attempt) outcome(cause error, tries int, again bool) (known bool, err error) {
	switch {
	case apierrors.IsNotFound(cause):
		return true, errors.Join(errNotOurs, cause)
	case tries == 1 && refused(cause) && !apierrors.IsConflict(cause):
		return true, cause
	case again && rest.Unanswered(cause):
		return false, nil
	case again && tries < patience && failedInside(cause):
		return false, nil
	}
	ctx, cancel := a.inTime()
	defer cancel()
	stored, err := a.Pods.Pod(ctx, a.queued.Pod.Namespace, a.queued.Pod.Name)
	switch {
	case apierrors.IsNotFound(err):
		return true, errors.Join(errNotOurs, cause)
	case err != nil:
		return tries >= patience && refused(err), errors.Join(cause, err)
	}
	return true, a.asStored(stored, cause)
}

// asStored finds out from the stored pod what became of its Binding.
func (a *attempt) asStored(stored *core.Pod, cause error) error {
	switch {
	case stored.UID != a.queued.Pod.UID:
		return errors.Join(errNotOurs, cause)
	case stored.Spec.NodeName == a.node:
		return nil
	case stored.Spec.NodeName != "" || apierrors.IsConflict(cause):
		return errors.Join(errNotOurs, cause)
	}
	return cause
}

// refused reports whether the server answered that it did not carry out the request.
func refused(err error) bool {
	code := codeOf(err)
	return code >= 400 && code < 500 && !rest.Unanswered(err)
}

// failedInside reports an answer that is a fault of the server. Ours has changed
// nothing then; kube-apiserver says the same where a webhook failed and where etcd
// did not answer.
func failedInside(err error) bool { return codeOf(err) == http.StatusInternalServerError }

func codeOf(err error) int32 {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code
	}
	return 0
}
