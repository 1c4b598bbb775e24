package status

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

// Start is the start of a pod, complete when the API knows that all its containers run.
type Start struct {
	Pod  *core.Pod
	Took time.Duration // since the pod was created
	// Excused is the part of it spent pulling images and in init containers, which
	// the startup latency SLI of SIG Scalability leaves out.
	Excused time.Duration
}

// span is from when to when something took.
type span struct{ from, to time.Time }

// Pulled notes the duration of a pull for a pod, successful or not.
func (m *Manager) Pulled(pod types.UID, from, to time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[pod]; e != nil && e.starting {
		e.pulls = append(e.pulls, span{from, to})
	}
}

// observeSent reports what the API has accepted.
func (m *Manager) observeSent(e *entry, w work) {
	now := m.options.Clock.Now()
	if m.options.Sent != nil && !e.changed.IsZero() {
		m.options.Sent(now.Sub(e.changed))
	}
	if e.changed = (time.Time{}); e.version > w.version {
		e.changed = now
	}
	if !e.starting || !w.own || !allRun(&w.status) {
		return
	}
	e.starting = false
	if m.options.Started != nil {
		m.options.Started(Start{
			Pod:     w.object,
			Took:    now.Sub(w.object.CreationTimestamp.Time),
			Excused: union(e.pulls) + inInitContainers(&w.status),
		})
	}
	e.pulls = nil
}

func allRun(status *core.PodStatus) bool {
	return len(status.ContainerStatuses) > 0 && !slices.ContainsFunc(status.ContainerStatuses, func(c core.ContainerStatus) bool {
		return c.State.Running == nil
	})
}

// union is how long at least one of the spans lasted.
func union(spans []span) (sum time.Duration) {
	slices.SortFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	var until time.Time
	for _, s := range spans {
		if s.from.Before(until) {
			s.from = until
		}
		if s.to.After(s.from) {
			sum += s.to.Sub(s.from)
			until = s.to
		}
	}
	return sum
}

func inInitContainers(status *core.PodStatus) (sum time.Duration) {
	for i := range status.InitContainerStatuses {
		if how := status.InitContainerStatuses[i].State.Terminated; how != nil && how.StartedAt.Unix() > 0 {
			sum += how.FinishedAt.Sub(how.StartedAt.Time)
		}
	}
	return sum
}
