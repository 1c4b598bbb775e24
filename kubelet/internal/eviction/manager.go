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
	"k8s.io/utils/ptr"

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
	// TransitionPeriod is how long a condition stays after the node was last short.
	TransitionPeriod time.Duration
	// IgnoreLimits lets pods use more of the disk than their limits say.
	IgnoreLimits bool
	// LongestRest is the most that lies between two looks at the disk of pods with limits, however long a look takes.
	LongestRest time.Duration

	// Observe returns what it could read, with an error about what it could not.
	Observe func(ctx context.Context) (map[Signal]Observation, error)
	// Measure returns what it could measure, with an error about what it could
	// not.
	Measure func(ctx context.Context, pods []*core.Pod, disk bool) (map[types.UID]*Usage, error)
	// Pods are those that use the node's resources.
	Pods func() []*core.Pod
	// Reclaim frees disk space that nobody needs: dead containers and, if images are on that
	// disk, unused ones.
	Reclaim func(ctx context.Context, images bool) error
	// Evict ends a pod, reports why, and waits for its end as far as that makes
	// sense.
	Evict func(ctx context.Context, pod *core.Pod, v Decision)
	// Changed is called when the node's conditions change, Warn with messages for
	// people about the node.
	Changed func()
	Warn    func(reason, message string)
	Clock   clock.WithTicker
	Logger  *zap.Logger
}

// Decision says how a pod is ended, and why.
type Decision struct {
	Grace   int64 // seconds
	Signal  string
	Message string
	// Limit says that the pod exceeded a limit of its own; the node was not short.
	Limit bool
	// Offenders is the message for programs; there is none for a limit.
	Offenders Offenders
}

// Manager watches over one node. It is safe for concurrent use.
type Manager struct {
	Options

	lock          sync.Mutex
	metSince      []time.Time                            // by threshold: since when it is met; zero if it is not
	lastMet       map[corev1.NodeConditionType]time.Time // when a threshold of the condition was last met
	underPressure map[corev1.NodeConditionType]bool
	apart         Apart // as it was when it was known last

	limits, blame inquiry // what pods with limits use, and who has filled the disk
}

// New returns a Manager that does nothing before Run.
func New(o Options) *Manager {
	return &Manager{
		Options: o, metSince: make([]time.Time, len(o.Thresholds)),
		lastMet: map[corev1.NodeConditionType]time.Time{}, underPressure: map[corev1.NodeConditionType]bool{},
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

// IsUnderPressure says whether the node has the pressure condition.
func (m *Manager) IsUnderPressure(condition corev1.NodeConditionType) bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.underPressure[condition]
}

// Synchronize looks at the node once, and ends the pods above their limits or,
// if there is none, at most one for the node's shortage. A pod that can't be
// measured does not keep it from looking at the node. It must not be called
// twice at the same time.
func (m *Manager) Synchronize(ctx context.Context) error {
	seen, unknown := m.Observe(ctx)
	m.updateConditions(seen)
	pods := m.Pods()
	ended, err := m.enforceLimits(ctx, pods)
	if ended {
		return errors.Join(unknown, err)
	}
	return errors.Join(err, m.evictIfShort(ctx, pods, seen, unknown))
}

// evictIfShort ends one pod at most if the node is short of something by what was seen of it.
func (m *Manager) evictIfShort(ctx context.Context, pods []*core.Pod, seen map[Signal]Observation, unknown error) error {
	due, ok := m.thresholdToAct(seen)
	if !ok {
		m.blame.abandon() // its answer would be old when the node is short again
		return unknown
	}
	m.Logger.Warn("node is short", zap.String("signal", string(due.Signal)), zap.Int64("available", seen[due.Signal].Available))
	m.Warn("EvictionThresholdMet", "Attempting to reclaim "+string(resources[due.Signal]))
	if conditions[due.Signal] == corev1.NodeDiskPressure {
		if err := m.Reclaim(ctx, !seen[due.Signal].Apart.Images || ofImages(due.Signal)); err != nil {
			m.Logger.Warn("some unused data could not be removed", zap.Error(err))
		}
		seen, unknown = m.Observe(ctx)
		if m.updateConditions(seen); !m.isMet(due, seen) {
			return unknown
		}
	}
	return errors.Join(unknown, m.evict(ctx, due, seen[due.Signal], pods))
}

// updateConditions notes which thresholds are met, and what the node's conditions are.
func (m *Manager) updateConditions(seen map[Signal]Observation) {
	m.lock.Lock()
	m.rememberDisks(seen)
	now := m.Clock.Now()
	for i, t := range m.Thresholds {
		o, ok := seen[t.Signal]
		if !ok {
			continue // not known now: as it was
		}
		least := t.Value.of(o.Capacity)
		if !m.metSince[i].IsZero() {
			least += t.MinReclaim.of(o.Capacity)
		}
		switch {
		case o.Available >= least:
			m.metSince[i] = time.Time{}
			continue
		case m.metSince[i].IsZero():
			m.metSince[i] = now
		}
		m.lastMet[conditions[t.Signal]] = now
	}
	changed := false
	for condition, last := range m.lastMet {
		under := now.Equal(last) || now.Sub(last) < m.TransitionPeriod
		changed = changed || under != m.underPressure[condition]
		m.underPressure[condition] = under
	}
	m.lock.Unlock()
	if changed {
		m.Changed()
	}
}

// rememberDisks sees to it that a runtime that does not answer for once is not taken for one that has
// everything on the node's disk.
func (m *Manager) rememberDisks(seen map[Signal]Observation) {
	if o, known := seen[ImageFSAvailable]; known {
		m.apart = o.Apart
		return
	}
	for signal, o := range seen {
		if conditions[signal] == corev1.NodeDiskPressure {
			o.Apart = m.apart
			seen[signal] = o
		}
	}
}

// thresholdToAct is the first threshold that has been met for longer than its grace
// period, and is now: one whose signal is not known at the moment is not acted on.
func (m *Manager) thresholdToAct(seen map[Signal]Observation) (Threshold, bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	now := m.Clock.Now()
	for i, t := range m.Thresholds {
		if _, known := seen[t.Signal]; known && !m.metSince[i].IsZero() && now.Sub(m.metSince[i]) >= t.GracePeriod {
			return t, true
		}
	}
	return Threshold{}, false
}

func (m *Manager) isMet(t Threshold, seen map[Signal]Observation) bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	_, known := seen[t.Signal]
	return known && !m.metSince[slices.Index(m.Thresholds, t)].IsZero()
}

// evict ends the pod that is most to blame among those that may be ended.
func (m *Manager) evict(ctx context.Context, t Threshold, seen Observation, pods []*core.Pod) error {
	pods = slices.DeleteFunc(slices.Clone(pods), podmanager.IsCritical)
	if len(pods) == 0 {
		m.Logger.Warn("node is short, and has no pod that could be evicted", zap.String("signal", string(t.Signal)))
		return nil
	}
	usages, err := m.measureToBlame(ctx, t, pods)
	if usages == nil {
		if err != nil {
			err = fmt.Errorf("which pod to evict: %w", err)
		}
		return err
	}
	pods = slices.DeleteFunc(pods, func(pod *core.Pod) bool { return usages[pod.UID] == nil }) // began since
	if len(pods) == 0 {
		return err
	}
	pod := rank(t.Signal, seen.Apart, pods, usages)[0]
	grace := int64(hardGrace)
	if t.GracePeriod > 0 {
		grace = min(m.MaxPodGrace, ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, m.MaxPodGrace))
	}
	message, why := evictionMessage(t, seen, pod, usages[pod.UID])
	m.Evict(ctx, pod, Decision{Grace: grace, Signal: string(t.Signal), Message: message, Offenders: why})
	return err
}

// measureToBlame returns what pods use of what the node is short of; nothing while disks are still measured.
func (m *Manager) measureToBlame(ctx context.Context, t Threshold, pods []*core.Pod) (map[types.UID]*Usage, error) {
	if conditions[t.Signal] != corev1.NodeDiskPressure {
		return m.Measure(ctx, pods, false)
	}
	m.blame.next = time.Time{} // it is urgent
	a, _ := m.measureDisks(ctx, &m.blame, pods)
	return a.usages, a.err
}
