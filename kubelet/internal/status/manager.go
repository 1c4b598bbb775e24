package status

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/relay"
)

// Pods finds the pods that the sources have now.
type Pods interface {
	ByUID(uid types.UID) (*core.Pod, bool)
	// APIPod is the object that stands for the pod in the API, or nil.
	APIPod(pod *core.Pod) *core.Pod
}

// Options are a Manager's parameters. The callbacks may be nil, and must not
// block.
type Options struct {
	API    API
	Pods   Pods
	Clock  clock.Clock
	Logger *zap.Logger

	// Resting is called when no status is on its way to the API any more.
	Resting func()
	// Running is called when a pod runs, with the time since this kubelet first
	// saw it.
	Running func(sinceSeen time.Duration)
	// Started is called once for each pod that this kubelet starts.
	Started func(Start)
	// Sent is called when the API has got a status, with the time since the pod's
	// state changed.
	Sent func(took time.Duration)
	// Ended is called once for each container that was seen to end.
	Ended func(kind ContainerKind, how *corev1.ContainerStateTerminated)
}

// Manager keeps the newest status of each pod and sends it to the API. It is
// safe for concurrent use.
type Manager struct {
	options Options

	// ctx ends all sending; set by Run, nil before it.
	ctx     context.Context
	sending sync.WaitGroup
	busy    atomic.Int32 // entries that are being sent
	// rested is closed when busy becomes zero; nil if nobody waits for that.
	rested chan struct{}

	mu      sync.Mutex
	entries map[types.UID]*entry
}

// entry is what is known about one pod's status. The version grows with each
// Set, and whenever the status is to be compared with the API again; sent is
// the last version that the API accepted.
type entry struct {
	name          types.NamespacedName
	status        core.PodStatus
	version, sent uint64
	finished      bool // nothing of the pod is left on the node
	deleted       bool // its object was deleted, or never was
	// unsettled says that the newest version is not to be sent: the next one may say
	// something else of what has not changed.
	unsettled bool
	// anew says that an earlier pod with that UID ended here: what the API shows may be
	// that one's.
	anew bool

	// seen is when the pod was seen first, until it runs; zero then.
	seen time.Time
	// starting lasts until the API knows that all containers run; pulls are the
	// image pulls meanwhile.
	starting bool
	pulls    []span
	// changed is since when the API has an outdated status; zero if it has the newest.
	changed time.Time
	// held is until when the newest version waits for the next; zero if it does not wait.
	held time.Time

	// base is the object as the API returned it for the last patch.
	base *core.Pod
	// busy says that a goroutine sends this entry; kick wakes it from a back-off.
	busy bool
	kick chan struct{}

	// stamps is nil for a pod that an earlier kubelet started: the relay is over.
	stamps *relay.Stamps
	// endStamps are of the pod's end, whichever kubelet has started it.
	endStamps relay.Stamps
	unsent    []relay.Stamp // taken from both, and not yet sent to the API
	// restarts are the last ones of the pod's containers; since is from when on they can be known.
	restarts relay.RestartLog
	since    time.Time
}

// NewManager returns a Manager that sends nothing before Run.
func NewManager(o Options) *Manager {
	return &Manager{options: o, entries: map[types.UID]*entry{}}
}

// Sending tells whether a status is on its way to the API.
func (m *Manager) Sending() bool { return m.busy.Load() > 0 }

// Rested is closed when no status is on its way to the API any more.
func (m *Manager) Rested() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rested == nil {
		m.rested = make(chan struct{})
	}
	rested := m.rested
	m.tellRested()
	return rested
}

func (m *Manager) tellRested() {
	if m.rested != nil && m.busy.Load() == 0 {
		close(m.rested)
		m.rested = nil
	}
}

// Run sends statuses until ctx ends, and then waits for what is under way.
func (m *Manager) Run(ctx context.Context) error {
	m.mu.Lock()
	m.ctx = ctx
	for uid, e := range m.entries {
		m.wake(uid, e)
	}
	m.mu.Unlock()
	<-ctx.Done()
	m.mu.Lock()
	m.ctx = nil // nothing more is sent, and whoever was about to has begun
	m.mu.Unlock()
	m.sending.Wait()
	return ctx.Err()
}

// Get is the newest status of the pod that was set.
func (m *Manager) Get(uid types.UID) (core.PodStatus, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries[uid]
	if !ok || e.version == 0 {
		return core.PodStatus{}, false
	}
	return e.status, true
}

// Stamps collects the stamps of the pod's way through this kubelet; it is nil
// for a pod that was started before.
func (m *Manager) Stamps(pod *core.Pod) *relay.Stamps {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entry(pod).stamps
}

// StampEnd stamps a hop of the pod's end. It goes with the next status.
func (m *Manager) StampEnd(pod *core.Pod, hop relay.Hop) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entry(pod).endStamps.Stamp(hop, m.options.Clock.Now())
}

func (m *Manager) entry(pod *core.Pod) *entry {
	e, ok := m.entries[pod.UID]
	if !ok {
		e = &entry{name: nameOf(pod), kick: make(chan struct{}, 1), since: m.options.Clock.Now()}
		if pod.Status.StartTime.IsZero() {
			e.stamps = &relay.Stamps{}
		}
		m.entries[pod.UID] = e
	}
	return e
}

// Begin says that the pod is being started; seen is when this kubelet first saw it.
// The status of an earlier, ended pod with that UID does not carry over: a static
// pod is a new one after its manifest was removed and put back.
func (m *Manager) Begin(pod *core.Pod, seen time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entry(pod)
	if e.finished || core.Ended(e.status.Phase) {
		e.deleted = true // nothing of it is sent any more
		delete(m.entries, pod.UID)
		e = m.entry(pod)
		e.anew = true
	}
	if e.stamps != nil { // of one that an earlier kubelet started it can't be told
		e.seen, e.starting = seen, true
	}
}

// Set records the pod's status and sends it if it is not what was set before.
func (m *Manager) Set(pod *core.Pod, status core.PodStatus) { m.set(pod, status, true) }

// SetUnsettled records a status that is known to be incomplete. It is not sent; another
// one must follow.
func (m *Manager) SetUnsettled(pod *core.Pod, status core.PodStatus) { m.set(pod, status, false) }

// Settled tells whether the pod's status is this kubelet's alone: whether its newest status is
// one that is sent, or an earlier kubelet can't have told of it.
func (m *Manager) Settled(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries[uid]
	return ok && (e.anew || e.version > 0 && !e.unsettled)
}

func (m *Manager) set(pod *core.Pod, status core.PodStatus, settled bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entry(pod)
	was := e.unsettled
	e.unsettled = !settled
	if e.version > 0 && equality.Semantic.DeepEqual(&e.status, &status) {
		if was && settled {
			m.wake(pod.UID, e)
		}
		return
	}
	if e.finished {
		return
	}
	m.stamp(e, &status)
	m.stampReady(e, &status)
	m.observeRunning(e, status.Phase)
	before := &e.status
	if e.version == 0 {
		before = m.inAPI(pod) // told by an earlier kubelet
	}
	m.observeEnded(before, &status)
	m.hold(pod.UID, e, e.version > 0 && isStep(&e.status, &status))
	e.status = status
	e.version++
	if e.changed.IsZero() {
		e.changed = m.options.Clock.Now()
	}
	m.wake(pod.UID, e)
}

func (m *Manager) stamp(e *entry, status *core.PodStatus) {
	if status.Phase == corev1.PodRunning {
		e.stamps.Stamp(relay.KubeletRunning, m.options.Clock.Now())
	}
	if c := findCondition(status.Conditions, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		e.stamps.Stamp(relay.KubeletReady, m.options.Clock.Now())
	}
}

func (m *Manager) observeRunning(e *entry, phase corev1.PodPhase) {
	if phase != corev1.PodRunning || e.seen.IsZero() || m.options.Running == nil {
		return
	}
	m.options.Running(m.options.Clock.Since(e.seen))
	e.seen = time.Time{}
}

// Finish says that nothing of the pod is left on the node: once the API has its
// last status, its object is deleted, if its deletion was requested.
func (m *Manager) Finish(pod *core.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entry(pod)
	e.finished = true
	e.held = time.Time{}
	m.wake(pod.UID, e)
}

// Reconcile compares the pod's status in the API with the one that was set, and
// sends the differences again.
func (m *Manager) Reconcile(pod *core.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries[pod.UID]
	if !ok || e.version == 0 && !e.finished {
		return
	}
	if e.version > 0 {
		e.version++ // a status that is just on its way may be older than what the API has
	}
	m.wake(pod.UID, e)
}

// Retain forgets all pods but the given ones.
func (m *Manager) Retain(known func(uid types.UID) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid, e := range m.entries {
		if !known(uid) && !e.busy {
			delete(m.entries, uid)
		}
	}
}

// wake makes sure that the entry's newest version is on its way.
func (m *Manager) wake(uid types.UID, e *entry) {
	select {
	case e.kick <- struct{}{}:
	default:
	}
	if e.busy || m.ctx == nil || m.ctx.Err() != nil {
		return
	}
	e.busy = true
	m.busy.Add(1)
	ctx := m.ctx
	m.sending.Go(func() { m.send(ctx, uid, e) })
}

// rest says that nothing of the entry will be sent any more.
func (m *Manager) rest(e *entry) {
	e.busy = false
	if m.busy.Add(-1) == 0 {
		m.tellRested()
		if m.options.Resting != nil {
			m.options.Resting()
		}
	}
}
