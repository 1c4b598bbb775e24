package probe

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// Events receives messages for users in a pod's event list.
type Events interface {
	ContainerEventf(pod *core.Pod, fieldPath, eventType, reason, format string, args ...any)
}

// ProbeRunner runs one probe once.
type ProbeRunner interface {
	Probe(ctx context.Context, target Target) (Answer, error)
}

// Config is a Manager's parameters.
type Config struct {
	Runner ProbeRunner
	// Status is a pod's state in the runtime, as far as known; an error or nil if
	// unknown.
	Status func(uid types.UID) (*runtimestate.PodStatus, error)
	// Reported is the pod's status in the API; nil if it has none that is known. A
	// static pod's is its mirror's.
	Reported func(pod *core.Pod) *core.PodStatus
	Events   Events
	// Observe is called for each result: successful, failed, warning or unknown.
	// Forget is called when a pod is no longer probed. Both may be nil.
	Observe func(pod *core.Pod, container string, kind Kind, result string, took time.Duration)
	Forget  func(pod *core.Pod)
	Clock   clock.Clock
	Logger  *zap.Logger
}

// Manager has the workers of all pods' probes. Its methods may be called from
// several goroutines.
type Manager struct {
	config  Config
	started time.Time // when this kubelet began to probe
	updates chan types.UID
	changed chan struct{} // holds one token when there is something in updated

	// Workers live in ctx, until their pod is removed or Run ends.
	ctx     context.Context
	cancel  context.CancelFunc
	workers sync.WaitGroup

	mu      sync.Mutex
	pods    map[types.UID]*probed
	results map[resultKey]podactions.ProbeResult
	updated []types.UID // pods with results that were not sent yet; no UID twice
}

// probed is one pod's probes.
type probed struct {
	pod     *core.Pod // the newest
	workers []*worker
}

// NewManager returns a Manager without pods.
func NewManager(config Config) *Manager {
	ctx, cancel := context.WithCancel(context.Background())
	return &Manager{
		config: config, started: config.Clock.Now(),
		updates: make(chan types.UID), changed: make(chan struct{}, 1),
		ctx: ctx, cancel: cancel,
		pods: map[types.UID]*probed{}, results: map[resultKey]podactions.ProbeResult{},
	}
}

// Run sends updates until ctx ends, then ends all workers.
func (m *Manager) Run(ctx context.Context) error {
	defer m.workers.Wait()
	defer m.stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-m.changed:
		}
		for _, uid := range m.takeUpdated() {
			select {
			case m.updates <- uid:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// stop ends all workers, and lets none begin afterwards: AddPod checks under the lock.
func (m *Manager) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cancel()
}

// Updates has the UIDs of pods with new results. A pod whose results change
// again before it was received is there only once.
func (m *Manager) Updates() <-chan types.UID { return m.updates }

func (m *Manager) takeUpdated() []types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	updated := m.updated
	m.updated = nil
	return updated
}

// AddPod starts probing the pod's containers. Adding it again updates the pod,
// and makes the workers look at its containers.
func (m *Manager) AddPod(pod *core.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx.Err() != nil {
		return
	}
	if p := m.pods[pod.UID]; p != nil {
		p.pod = pod
		p.wake()
		return
	}
	p := &probed{pod: pod}
	for i := range pod.Spec.Containers {
		m.addContainer(p, &pod.Spec.Containers[i], "spec.containers{"+pod.Spec.Containers[i].Name+"}")
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if core.IsSidecar(c) {
			m.addContainer(p, c, "spec.initContainers{"+c.Name+"}")
		}
	}
	if len(p.workers) > 0 {
		m.pods[pod.UID] = p
	}
}

func (m *Manager) addContainer(p *probed, container *core.Container, path string) {
	for kind, probe := range probesOf(container) {
		if probe == nil {
			continue
		}
		ctx, cancel := context.WithCancel(m.ctx)
		w := &worker{
			manager: m, uid: p.pod.UID, container: container, path: path, kind: kind, probe: withDefaults(probe),
			woken: make(chan struct{}, 1), cancel: cancel,
		}
		p.workers = append(p.workers, w)
		m.workers.Go(func() { w.run(ctx) })
	}
}

// RemovePod ends all of the pod's probes, and forgets their results.
func (m *Manager) RemovePod(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pods[uid]
	if p == nil {
		return
	}
	for _, w := range p.workers {
		w.stop()
		delete(m.results, resultKey{w.id, w.kind})
	}
	delete(m.pods, uid)
	if m.config.Forget != nil {
		m.config.Forget(p.pod)
	}
}

// StopLivenessAndStartup ends the probes that could restart a container: the
// pod is ending. Readiness probes continue, so that traffic ends when it
// should, and started containers stay started.
func (m *Manager) StopLivenessAndStartup(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pods[uid]
	if p == nil {
		return
	}
	for _, w := range p.workers {
		if w.kind == Readiness {
			continue
		}
		w.stop()
		key := resultKey{w.id, w.kind}
		if w.kind == Liveness || m.results[key] != podactions.ProbeSuccess {
			delete(m.results, key)
		}
	}
}

// Retain removes the pods that are not known.
func (m *Manager) Retain(known func(uid types.UID) bool) {
	m.mu.Lock()
	uids := slices.Collect(maps.Keys(m.pods))
	m.mu.Unlock()
	for _, uid := range uids {
		if !known(uid) {
			m.RemovePod(uid)
		}
	}
}

// Changed makes the pod's workers look at its containers: there may be others.
func (m *Manager) Changed(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.pods[uid]; p != nil {
		p.wake()
	}
}

func (p *probed) wake() {
	for _, w := range p.workers {
		w.wake()
	}
}

// newest is the pod as it was added last.
func (m *Manager) newest(uid types.UID) *core.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.pods[uid]; p != nil {
		return p.pod
	}
	return nil
}

// notify notes that the pod has new results. The caller holds m.mu.
func (m *Manager) notify(uid types.UID) {
	if slices.Contains(m.updated, uid) {
		return
	}
	m.updated = append(m.updated, uid)
	select {
	case m.changed <- struct{}{}:
	default: // Run already knows
	}
}
