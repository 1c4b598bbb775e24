package podworker

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/daemon"
)

// Options are what Workers need besides the Syncer. Resync and Retry have
// defaults.
type Options struct {
	Clock  clock.Clock
	Logger *zap.Logger
	// Resync is how long a healthy pod is left alone; up to a tenth is added at random.
	Resync time.Duration
	// Retry is the wait after failed steps.
	Retry backoff.Policy
	// Observe is called with the duration of each step; it may be nil.
	Observe func(job Job, took time.Duration)
	// Restarted is called for each pod that is started after an earlier pod with
	// its UID has ended; it may be nil, and must not call the Workers.
	Restarted func(pod *core.Pod)
}

// Workers has a worker for each pod. A worker is a goroutine only while it has
// something to do. It is safe for concurrent use.
type Workers struct {
	syncer    Syncer
	clock     clock.Clock
	logger    *zap.Logger
	observe   func(Job, time.Duration)
	restarted func(*core.Pod)
	resync    backoff.Policy
	retry     *backoff.Keyed[types.UID]
	queue     *queue

	ctx     context.Context // of all steps; ended by Stop
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	entries map[types.UID]*entry
	// names has the UIDs of the started pods for each full name, waiting those
	// that wait for it, in order of arrival.
	names   map[types.NamespacedName]map[types.UID]bool
	waiting map[types.NamespacedName][]types.UID
	stopped bool
}

// New returns Workers whose steps end with ctx.
func New(ctx context.Context, syncer Syncer, o Options) *Workers {
	if o.Resync == 0 {
		o.Resync = time.Minute
	}
	if o.Retry.Initial == 0 {
		o.Retry = backoff.Policy{Initial: time.Second, Max: 10 * time.Second, Jitter: 0.1}
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Observe == nil {
		o.Observe = func(Job, time.Duration) {}
	}
	if o.Restarted == nil {
		o.Restarted = func(*core.Pod) {}
	}
	ctx, stop := context.WithCancel(ctx)
	return &Workers{
		syncer: syncer, clock: o.Clock, logger: o.Logger, observe: o.Observe, restarted: o.Restarted,
		ctx: ctx, stop: stop,
		resync:  backoff.Policy{Initial: o.Resync, Max: o.Resync, Jitter: 0.1},
		retry:   backoff.NewKeyed[types.UID](o.Retry, o.Clock),
		queue:   newQueue(o.Clock),
		entries: map[types.UID]*entry{},
		names:   map[types.NamespacedName]map[types.UID]bool{},
		waiting: map[types.NamespacedName][]types.UID{},
	}
}

// Stop ends all steps and waits for them. Containers are left as they are.
func (w *Workers) Stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.stop()
	w.running.Wait()
}

// Update hands a pod to its worker. It never blocks on the pod.
func (w *Workers) Update(u Update) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.update(&u)
}

func (w *Workers) update(u *Update) {
	uid := u.uid()
	e, known := w.entries[uid]
	if !known {
		e = newEntry(u)
		w.entries[uid] = e
	}
	was := e.phase
	due := e.take(u)
	if !was.holdsName() && e.phase.holdsName() {
		w.holdName(e)
	}
	if e.phase == Finished && e.removed {
		w.forget(e)
		return
	}
	if due {
		w.wake(e)
	}
}

// afterFailure is the minimum delay between a failed step and the next look
// because something happened to the pod: the failed step itself may be what
// happened.
const afterFailure = 5 * time.Second

// Resync makes the pods' workers look at them again, now or soon after their
// last failures. Pods without a worker are ignored.
func (w *Workers) Resync(uids ...types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, uid := range uids {
		if left := w.retry.Remaining(uid); left > 0 {
			w.queue.bring(uid, min(left, afterFailure))
			continue
		}
		w.again(uid)
	}
}

// again repeats the pod's last step.
func (w *Workers) again(uid types.UID) {
	e, ok := w.entries[uid]
	if !ok || e.phase == Finished || e.latest() == nil {
		return
	}
	if e.pending == nil {
		again := *e.active
		again.Type, again.Start = Sync, time.Time{}
		e.pending = &again
	}
	w.wake(e)
}

// SyncDue resyncs the pods whose time has come: failed steps to repeat,
// back-offs that are over, and pods that have not been looked at for long.
func (w *Workers) SyncDue() {
	due := w.queue.take()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, uid := range due {
		w.again(uid)
	}
}

// wake makes sure that a goroutine works on the entry.
func (w *Workers) wake(e *entry) {
	if e.working || w.stopped {
		return
	}
	e.working = true
	w.running.Go(func() { w.work(e) })
}

// work does the entry's steps until none is due.
func (w *Workers) work(e *entry) {
	for {
		ctx, job, ok := w.begin(e)
		if !ok {
			return
		}
		start := w.clock.Now()
		outcome, err := w.step(ctx, job)
		w.observe(job, w.clock.Since(start))
		w.finish(e, job, outcome, err)
	}
}

func (w *Workers) begin(e *entry) (context.Context, Job, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.pending == nil || w.stopped || w.entries[e.uid] != e {
		e.working = false
		return nil, Job{}, false
	}
	if w.queueUp(e); !w.mayStart(e) {
		e.working = false
		return nil, Job{}, false
	}
	if e.phase == Waiting {
		e.move(Syncing)
		w.holdName(e)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	e.cancel = cancel
	w.queue.drop(e.uid)
	return ctx, e.begin(), true
}

func (w *Workers) step(ctx context.Context, job Job) (Outcome, error) {
	switch {
	case job.Phase == Syncing:
		return w.syncer.SyncPod(ctx, job)
	case job.Phase == Terminating && job.Running != nil:
		return Outcome{}, w.syncer.SyncTerminatingRuntimePod(ctx, *job.Running)
	case job.Phase == Terminating:
		return Outcome{}, w.syncer.SyncTerminatingPod(ctx, job)
	default:
		return Outcome{}, w.syncer.SyncTerminatedPod(ctx, job)
	}
}

func (w *Workers) finish(e *entry, job Job, outcome Outcome, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.cancel()
	e.cancel = nil
	next := e.finish(job, outcome, err)
	switch {
	case e.phase == Finished || e.phase == Unknown:
		w.retry.Reset(e.uid)
		w.releaseName(e)
		if e.phase == Unknown || e.removed {
			w.forget(e)
		}
	case next:
		// The next step is due at once.
	case w.ctx.Err() != nil:
		// The kubelet is stopping; the next one continues.
	case err != nil:
		after := w.retry.Fail(e.uid)
		w.logger.Warn("pod sync failed, will retry", daemon.PodKey(e.fullName.Namespace, e.fullName.Name, e.uid),
			zap.Stringer("phase", job.Phase), zap.Duration("after", after), zap.Error(err))
		w.queue.bring(e.uid, after)
	default:
		w.retry.Reset(e.uid)
		if w.queue.drop(e.uid) {
			w.again(e.uid) // what happened during the step was deferred because of the earlier failure
			return
		}
		after := outcome.After
		if after <= 0 {
			after = w.resync.Delay(1)
		}
		w.queue.bring(e.uid, after)
	}
}
