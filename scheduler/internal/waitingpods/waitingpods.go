package waitingpods

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/scheduler/framework"
)

// maxWait bounds the wait that a plugin may ask for, as upstream does: a
// waiting pod's room is lost to all others.
const maxWait = 15 * time.Minute

// Map is safe for concurrent use.
type Map struct {
	clock clock.Clock

	mu         sync.Mutex
	pods       map[types.UID]*Pod
	prebinding map[types.UID]*prebinding
}

// New returns a Map without pods.
func New(clock clock.Clock) *Map {
	return &Map{clock: clock, pods: map[types.UID]*Pod{}, prebinding: map[types.UID]*prebinding{}}
}

// Pod is a waiting pod.
type Pod struct {
	all  *Map
	pod  *core.Pod
	node string

	// Under all.mu:
	pending map[string]deadline // by plugin
	refusal *framework.Status

	changed chan struct{}
}

// deadline is when a plugin's time is over, and how long that was.
type deadline struct {
	at   time.Time
	wait time.Duration
}

// Add makes a pod wait for the named plugins, for each as long as it asked for.
func (m *Map) Add(pod *core.Pod, node string, waits map[string]time.Duration) *Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := &Pod{all: m, pod: pod, node: node, pending: map[string]deadline{}, changed: make(chan struct{}, 1)}
	now := m.clock.Now()
	for plugin, wait := range waits {
		wait = min(wait, maxWait)
		p.pending[plugin] = deadline{now.Add(wait), wait}
	}
	m.pods[pod.UID] = p
	return p
}

// Get implements framework.WaitingPods.
func (m *Map) Get(uid types.UID) (framework.WaitingPod, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, waits := m.pods[uid]
	return p, waits
}

// All implements framework.WaitingPods.
func (m *Map) All() []framework.WaitingPod {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]framework.WaitingPod, 0, len(m.pods))
	for _, p := range m.pods {
		all = append(all, p)
	}
	return all
}

// Reject ends a pod's waiting on behalf of a plugin, or of nobody, and reports
// whether it waited.
func (m *Map) Reject(uid types.UID, plugin, reason string) bool {
	p, waits := m.Get(uid)
	if waits {
		p.Reject(plugin, reason)
	}
	return waits
}

// Pod implements framework.WaitingPod.
func (p *Pod) Pod() *core.Pod { return p.pod }

// Node implements framework.WaitingPod.
func (p *Pod) Node() string { return p.node }

// Pending implements framework.WaitingPod.
func (p *Pod) Pending() []string {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	var plugins []string
	for plugin := range p.pending {
		plugins = append(plugins, plugin)
	}
	return plugins
}

// Allow implements framework.WaitingPod.
func (p *Pod) Allow(plugin string) {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	delete(p.pending, plugin)
	p.tell()
}

// Reject implements framework.WaitingPod.
func (p *Pod) Reject(plugin, reason string) {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	p.refuse(plugin, reason)
	p.tell()
}

// refuse keeps the first refusal.
func (p *Pod) refuse(plugin, reason string) {
	if p.refusal == nil {
		p.refusal = framework.NewStatus(framework.Unschedulable, reason).By(plugin)
	}
}

func (p *Pod) tell() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// Wait returns when every plugin has allowed the pod, one has rejected it, a
// plugin's time is over, or ctx has ended.
func (p *Pod) Wait(ctx context.Context) *framework.Status {
	for {
		status, wait := p.look(ctx.Err())
		if wait == 0 {
			return status
		}
		timer := p.all.clock.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-p.changed:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// look returns the state, and how long the pod may still wait; zero if the
// waiting is over, and its outcome final.
func (p *Pod) look(stopped error) (status *framework.Status, wait time.Duration) {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	now := p.all.clock.Now()
	for plugin, d := range p.pending {
		left := d.at.Sub(now)
		if left <= 0 {
			p.refuse(plugin, fmt.Sprintf("rejected due to timeout after waiting %v at plugin %v", d.wait, plugin))
		} else if wait == 0 || left < wait {
			wait = left
		}
	}
	switch {
	case stopped != nil:
		status, wait = framework.AsError(stopped), 0
	case p.refusal != nil:
		status, wait = p.refusal, 0
	}
	if wait == 0 && p.all.pods[p.pod.UID] == p {
		delete(p.all.pods, p.pod.UID)
	}
	return status, wait
}
