package probe

import (
	"context"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

// attempts is how often a probe that could not run at all (by a fault of ours
// or the runtime's, not the container's) is repeated at once.
const attempts = 3

// firstRetry is the wait after a container's first answer that it is not ready.
// The waits double up to the period, until it has been ready: few programs
// listen at the moment they start, and one that does 50 ms later should not wait
// for traffic through a whole period. Kubernetes docs, "Configure Probes": while
// a container is not ready, it may be asked at other times than each period.
const firstRetry = 100 * time.Millisecond

// worker runs one probe of one container, for as long as its pod is probed.
//
// For each container that the runtime has by that name it goes through:
//
//	waiting   not running, or not started yet (Liveness, Readiness)
//	asking    once a period, from initialDelay after the start on; Liveness without
//	          one from a period after it; Readiness more often until it has succeeded
//	done      Startup that succeeded; Liveness and Startup that failed: what
//	          comes next is another container
type worker struct {
	manager   *Manager
	uid       types.UID
	container *core.Container
	path      string // of the container in the pod, for events
	kind      Kind
	probe     *corev1.Probe
	woken     chan struct{} // holds one token when there is something to look at
	cancel    context.CancelFunc

	// Guarded by the Manager's lock, because others read or set them.
	id      runtimestate.ContainerID // that is probed
	stopped bool                     // results are no longer taken

	// The worker's own.
	next      time.Time // when to ask
	last      podactions.ProbeResult
	resultRun int32 // how often in a row last was the answer
	asked     int   // how often, for this container
	answered  bool  // once it has succeeded, for this container
	unsettled bool  // what an earlier kubelet reported of this container is not known yet
	done      bool
}

// wake makes the worker look again; it never blocks.
func (w *worker) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// stop ends the worker. The caller holds the Manager's lock.
func (w *worker) stop() {
	w.stopped = true
	w.cancel()
}

func (w *worker) period() time.Duration { return time.Duration(w.probe.PeriodSeconds) * time.Second }

// run works until ctx ends.
func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		wait := w.step(ctx)
		timer := w.manager.config.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-w.woken:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// step runs the probe if it is time to, and returns how long to wait until the next look.
func (w *worker) step(ctx context.Context) time.Duration {
	status := w.status()
	if status == nil || status.State != runtimestate.StateRunning {
		w.gone(status)
		return w.period()
	}
	if status.ID != w.id {
		w.begin(status)
	}
	w.settle()
	if w.done || !w.isDue(status.ID) {
		return w.period()
	}
	if wait := w.next.Sub(w.manager.config.Clock.Now()); wait > 0 {
		return wait
	}
	w.next = w.manager.config.Clock.Now().Add(w.period())
	w.asked++
	w.ask(ctx, status.ID)
	now := w.manager.config.Clock.Now()
	if retry := now.Add(w.retry()); retry.Before(w.next) {
		w.next = retry
	}
	return max(0, w.next.Sub(now))
}

// retry is how long after the last answer to ask again, at the latest. A container that may have
// been ready under an earlier kubelet has as much time to fail as any that was.
func (w *worker) retry() time.Duration {
	if w.kind != Readiness || w.answered || w.unsettled || w.last != podactions.ProbeFailure {
		return w.period()
	}
	return backoff.Policy{Initial: firstRetry, Max: w.period()}.Delay(w.asked)
}

// status is the newest container by the worker's name.
func (w *worker) status() *runtimestate.ContainerStatus {
	status, err := w.manager.config.Status(w.uid)
	if err != nil || status == nil {
		return nil
	}
	return status.Container(w.container.Name)
}

// gone notes that a container that was ready no longer runs.
func (w *worker) gone(status *runtimestate.ContainerStatus) {
	if w.kind == Readiness && status != nil && status.ID == w.id {
		w.record(podactions.ProbeFailure)
	}
}

// begin starts with a container that was not probed yet.
func (w *worker) begin(status *runtimestate.ContainerStatus) {
	m := w.manager
	now := m.config.Clock.Now()
	// The clock may have been set since the container started: a remaining delay
	// is never longer than the whole.
	delay := w.delay()
	w.next = now.Add(min(delay, max(0, status.StartedAt.Add(delay).Sub(now))))
	if m.earlier(status) && !w.next.After(now) {
		// An earlier kubelet started it. Such containers must not all be probed at
		// the moment when this kubelet starts.
		w.next = now.Add(rand.N(w.period()))
	}
	w.last, w.resultRun, w.asked, w.answered, w.done = podactions.ProbeUnknown, 0, 0, false, false

	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.results, resultKey{w.id, w.kind})
	w.id = status.ID
	if w.stopped {
		return
	}
	reported := w.reported()
	if w.unsettled = reported == nil && w.kind != Liveness && m.earlier(status); !w.unsettled {
		w.set(w.initial(reported))
	}
}

// reported is the status of the worker's pod in the API. The caller holds the Manager's
// lock.
func (w *worker) reported() *core.PodStatus {
	if p := w.manager.pods[w.uid]; p != nil {
		return w.manager.config.Reported(p.pod)
	}
	return nil
}

// settle takes over what an earlier kubelet reported of the container, once that is
// known, unless the container has answered since.
func (w *worker) settle() {
	if !w.unsettled {
		return
	}
	m := w.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.stopped {
		return
	}
	if _, known := m.results[resultKey{w.id, w.kind}]; known {
		w.unsettled = false
		return
	}
	reported := w.reported()
	if reported == nil {
		return
	}
	w.unsettled = false
	w.set(w.initial(reported))
	if w.kind == Startup {
		m.pods[w.uid].wake() // the other probes may be due now
	}
}

// set keeps the result before the first answer. The caller holds the Manager's lock.
func (w *worker) set(initial podactions.ProbeResult) {
	w.answered = w.kind == Readiness && initial == podactions.ProbeSuccess
	if initial != podactions.ProbeUnknown {
		w.manager.results[resultKey{w.id, w.kind}] = initial
	}
}

// delay is how long after a container's start to ask first.
func (w *worker) delay() time.Duration {
	if w.kind == Liveness && w.probe.InitialDelaySeconds == 0 && w.container.StartupProbe == nil {
		// Programs that do not listen yet are alive. Asked at once, nearly each of
		// them would fail once, and with failureThreshold: 1 be ended at each start.
		return w.period()
	}
	return time.Duration(w.probe.InitialDelaySeconds) * time.Second
}

// initial is the result before the first probe: a container counts as alive and
// not ready. What an earlier kubelet reported of it stays valid.
func (w *worker) initial(reported *core.PodStatus) podactions.ProbeResult {
	before := statusOf(reported, w.container.Name, w.id)
	switch w.kind {
	case Liveness:
		return podactions.ProbeSuccess
	case Readiness:
		if before != nil && before.Ready {
			return podactions.ProbeSuccess
		}
		return podactions.ProbeFailure
	}
	if before != nil && ptr.Deref(before.Started, false) {
		return podactions.ProbeSuccess
	}
	return podactions.ProbeUnknown
}

// isDue tells whether this kind of probe runs now: Startup until it succeeds,
// the others after that.
func (w *worker) isDue(id runtimestate.ContainerID) bool {
	if w.container.StartupProbe == nil {
		return true
	}
	result, _ := w.manager.result(id, Startup)
	return (result == podactions.ProbeSuccess) != (w.kind == Startup)
}

// ask runs the probe once, and records the answer.
func (w *worker) ask(ctx context.Context, id runtimestate.ContainerID) {
	target, ok := w.target(id)
	if !ok {
		return
	}
	var answer Answer
	var err error
	began := w.manager.config.Clock.Now()
	for range attempts {
		answer, err = w.manager.config.Runner.Probe(ctx, target)
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return
	}
	w.observe(target.Pod, answer, err, w.manager.config.Clock.Since(began))
	if err != nil {
		// Nothing was learned about the container; the old result stays valid.
		w.event(target.Pod, "Unhealthy", "%s probe errored and resulted in unknown state: %v", w.kind, err)
		w.manager.config.Logger.Warn("probe could not be executed",
			zap.Stringer("kind", w.kind), daemon.PodFields(target.Pod), zap.String("container", w.container.Name), zap.Error(err))
		return
	}
	w.take(target.Pod, answer)
}

// observe reports an answer unless the pod's probes have ended.
func (w *worker) observe(pod *core.Pod, answer Answer, err error, took time.Duration) {
	m := w.manager
	m.mu.Lock() // so that nothing is reported about a forgotten pod
	defer m.mu.Unlock()
	if m.config.Observe == nil || w.stopped {
		return
	}
	result := map[Result]string{Success: "successful", Failure: "failed", Warning: "warning"}[answer.Result]
	if err != nil {
		result = "unknown"
	}
	m.config.Observe(pod, w.container.Name, w.kind, result, took)
}

// take counts an answer, and records it once it has come often enough in a row.
func (w *worker) take(pod *core.Pod, answer Answer) {
	result := podactions.ProbeSuccess
	switch answer.Result {
	case Failure:
		result = podactions.ProbeFailure
		w.event(pod, "Unhealthy", "%s probe failed: %s", w.kind, answer.Output)
	case Warning:
		w.event(pod, "ProbeWarning", "%s probe warning: %s", w.kind, answer.Output)
	}
	if w.last != result {
		w.last, w.resultRun = result, 0
	}
	w.resultRun++
	w.answered = w.answered || result == podactions.ProbeSuccess
	if result == podactions.ProbeFailure && w.resultRun < w.probe.FailureThreshold ||
		result == podactions.ProbeSuccess && w.resultRun < w.probe.SuccessThreshold {
		return
	}
	// A container that has failed is being ended; probing it again meanwhile could
	// end its successor.
	w.done = w.kind != Readiness && result == podactions.ProbeFailure
	w.record(result)
}

// record keeps a result and reports it if it has changed.
func (w *worker) record(result podactions.ProbeResult) {
	m := w.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.stopped || w.id.IsEmpty() {
		return
	}
	key := resultKey{w.id, w.kind}
	if m.results[key] == result {
		return
	}
	m.results[key] = result
	m.notify(w.uid)
	if p := m.pods[w.uid]; p != nil && w.kind == Startup {
		p.wake() // the other probes are due now
	}
}

func (w *worker) event(pod *core.Pod, reason, format string, args ...any) {
	w.manager.config.Events.ContainerEventf(pod, w.path, corev1.EventTypeWarning, reason, format, args...)
}

// target is the current target.
func (w *worker) target(id runtimestate.ContainerID) (Target, bool) {
	pod := w.manager.newest(w.uid)
	status, err := w.manager.config.Status(w.uid)
	if pod == nil || err != nil || status == nil {
		return Target{}, false
	}
	target := Target{Pod: pod, Container: w.container, ID: id, Probe: w.probe}
	if len(status.IPs) > 0 {
		target.IP = status.IPs[0]
	}
	return target, true
}
