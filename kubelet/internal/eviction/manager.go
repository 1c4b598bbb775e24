package eviction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/podmanager"
	"kctl/proto/core"
)

// interval is upstream's between two looks at the node.
const interval = 10 * time.Second

// hardGrace is the grace period, in seconds, of pods that are ended at once: the
// smallest possible.
const hardGrace = 1

// Options are what a Manager works on. All are needed.
type Options struct {
	Thresholds []Threshold
	// MaxPodGrace is the longest grace period, in seconds, of a pod that is
	// evicted for a soft threshold.
	MaxPodGrace int64
	// Transition is how long a condition stays after the node was last short.
	Transition time.Duration

	Observe func(ctx context.Context) (map[Signal]Observation, error)
	// Measure returns what it could measure, with an error about what it could
	// not.
	Measure func(ctx context.Context, pods []*core.Pod, disk bool) (map[types.UID]*Usage, error)
	// Pods are those that use the node's resources.
	Pods func() []*core.Pod
	// Reclaim frees disk space that nobody needs: dead containers and unused images.
	Reclaim func(ctx context.Context) error
	// Evict ends a pod, reports why, and waits for its end as far as that makes
	// sense.
	Evict func(ctx context.Context, pod *core.Pod, v Verdict)
	// Changed is called when the node's conditions change, Warn with messages for
	// people about the node.
	Changed func()
	Warn    func(reason, message string)
	Clock   clock.WithTicker
	Logger  *zap.Logger
}

// Verdict says how a pod is ended, and why.
type Verdict struct {
	Grace   int64 // seconds
	Signal  string
	Message string
	// Limit says that the pod exceeded a limit of its own; the node was not short.
	Limit bool
	// Blame is the message for programs; there is none for a limit.
	Blame Blame
}

// Manager watches over one node. It is safe for concurrent use.
type Manager struct {
	Options

	lock  sync.Mutex
	since []time.Time                            // by threshold: since when it is met; zero if it is not
	last  map[corev1.NodeConditionType]time.Time // when a threshold of the condition was last met
	under map[corev1.NodeConditionType]bool
}

// New returns a Manager that does nothing before Run.
func New(o Options) *Manager {
	return &Manager{
		Options: o, since: make([]time.Time, len(o.Thresholds)),
		last: map[corev1.NodeConditionType]time.Time{}, under: map[corev1.NodeConditionType]bool{},
	}
}

// Run watches until ctx ends.
func (m *Manager) Run(ctx context.Context) error {
	ticker := m.Clock.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := m.Synchronize(ctx); err != nil && ctx.Err() == nil {
			m.Logger.Warn("what the node is short of is not known", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// Under says whether the node has the pressure condition.
func (m *Manager) Under(condition corev1.NodeConditionType) bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.under[condition]
}

// Synchronize looks at the node once, and ends the pods above their limits or,
// if there is none, at most one for the node's shortage. A pod that can't be
// measured does not keep it from looking at the node.
func (m *Manager) Synchronize(ctx context.Context) error {
	pods := m.Pods()
	ended, err := m.enforceLimits(ctx, pods)
	if ended {
		return err
	}
	return errors.Join(err, m.relieve(ctx, pods))
}

// relieve ends one pod at most if the node is short of something.
func (m *Manager) relieve(ctx context.Context, pods []*core.Pod) error {
	seen, err := m.Observe(ctx)
	if err != nil {
		return err
	}
	m.judge(seen)
	due, ok := m.due()
	if !ok {
		return nil
	}
	m.Logger.Warn("node is short", zap.String("signal", string(due.Signal)), zap.Int64("available", seen[due.Signal].Available))
	m.Warn("EvictionThresholdMet", "Attempting to reclaim "+string(resources[due.Signal]))
	if conditions[due.Signal] == corev1.NodeDiskPressure {
		if err := m.Reclaim(ctx); err != nil {
			m.Logger.Warn("not everything that nobody needs could be removed", zap.Error(err))
		}
		if seen, err = m.Observe(ctx); err != nil {
			return err
		}
		if m.judge(seen); !m.met(due) {
			return nil
		}
	}
	return m.evict(ctx, due, seen[due.Signal], pods)
}

// judge notes which thresholds are met, and what the node's conditions are.
func (m *Manager) judge(seen map[Signal]Observation) {
	m.lock.Lock()
	now := m.Clock.Now()
	for i, t := range m.Thresholds {
		o, ok := seen[t.Signal]
		if !ok {
			continue // not known now: as it was
		}
		least := t.Least.of(o.Capacity)
		if !m.since[i].IsZero() {
			least += t.Reclaim.of(o.Capacity)
		}
		switch {
		case o.Available >= least:
			m.since[i] = time.Time{}
			continue
		case m.since[i].IsZero():
			m.since[i] = now
		}
		m.last[conditions[t.Signal]] = now
	}
	changed := false
	for condition, last := range m.last {
		under := now.Equal(last) || now.Sub(last) < m.Transition
		changed = changed || under != m.under[condition]
		m.under[condition] = under
	}
	m.lock.Unlock()
	if changed {
		m.Changed()
	}
}

// due is the first threshold that has been met for longer than its grace
// period.
func (m *Manager) due() (Threshold, bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	now := m.Clock.Now()
	for i, t := range m.Thresholds {
		if !m.since[i].IsZero() && now.Sub(m.since[i]) >= t.Grace {
			return t, true
		}
	}
	return Threshold{}, false
}

func (m *Manager) met(t Threshold) bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	return !m.since[slices.Index(m.Thresholds, t)].IsZero()
}

// evict ends the pod that is most to blame among those that may be ended.
func (m *Manager) evict(ctx context.Context, t Threshold, seen Observation, pods []*core.Pod) error {
	pods = slices.DeleteFunc(slices.Clone(pods), podmanager.IsCritical)
	if len(pods) == 0 {
		m.Logger.Warn("node is short, and has no pod that could be evicted", zap.String("signal", string(t.Signal)))
		return nil
	}
	usages, err := m.Measure(ctx, pods, conditions[t.Signal] == corev1.NodeDiskPressure)
	if usages == nil {
		return fmt.Errorf("which pod to evict: %w", err)
	}
	pod := rank(t.Signal, pods, usages)[0]
	grace := int64(hardGrace)
	if t.Grace > 0 {
		grace = m.MaxPodGrace
		if own := pod.Spec.TerminationGracePeriodSeconds; own != nil && *own < grace {
			grace = *own
		}
	}
	message, why := blame(t, seen, pod, usages[pod.UID])
	m.Evict(ctx, pod, Verdict{Grace: grace, Signal: string(t.Signal), Message: message, Blame: why})
	return err
}
