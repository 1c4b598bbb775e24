package probe

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kctl/kubelet/internal/podactions"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// Kind is what a probe is for.
type Kind int

const (
	Liveness Kind = iota
	Readiness
	Startup
)

// String is the kind as events write it.
func (k Kind) String() string { return [...]string{"Liveness", "Readiness", "Startup"}[k] }

// probesOf are the container's probes; nil for those that it does not have.
func probesOf(c *core.Container) map[Kind]*corev1.Probe {
	return map[Kind]*corev1.Probe{Liveness: c.LivenessProbe, Readiness: c.ReadinessProbe, Startup: c.StartupProbe}
}

// withDefaults fills in the API server's defaults, which pods from files lack.
func withDefaults(probe *corev1.Probe) *corev1.Probe {
	p := *probe
	for _, field := range []struct {
		value *int32
		or    int32
	}{{&p.TimeoutSeconds, 1}, {&p.PeriodSeconds, 10}, {&p.SuccessThreshold, 1}, {&p.FailureThreshold, 3}} {
		if *field.value <= 0 {
			*field.value = field.or
		}
	}
	return &p
}

// resultKey identifies the result of one probe of one container.
type resultKey struct {
	id   runtimestate.ContainerID
	kind Kind
}

// Ready tells whether a running container accepts traffic: it has started, and
// its readiness probe, if it has one, succeeds. For a container that an earlier
// kubelet started, the pod's status in the API counts until the first probe.
func (m *Manager) Ready(pod *core.Pod, container string, id runtimestate.ContainerID) bool {
	if !m.Started(pod, container, id) {
		return false
	}
	spec := core.FindContainer(pod, container)
	if spec == nil || spec.ReadinessProbe == nil {
		return true
	}
	if result, known := m.result(id, Readiness); known {
		return result == podactions.ProbeSuccess
	}
	before := statusOf(m.config.Reported(pod), container, id)
	return before != nil && before.Ready
}

// Started tells whether a running container has started: its startup probe, if
// it has one, succeeded.
func (m *Manager) Started(pod *core.Pod, container string, id runtimestate.ContainerID) bool {
	spec := core.FindContainer(pod, container)
	if spec == nil || spec.StartupProbe == nil {
		return true
	}
	if result, known := m.result(id, Startup); known {
		return result == podactions.ProbeSuccess
	}
	before := statusOf(m.config.Reported(pod), container, id)
	return before != nil && ptr.Deref(before.Started, false)
}

// Settled tells whether what is told of a pod now stands. It does not if an earlier kubelet
// has started a container of it, until what that kubelet reported is known: a static pod is
// there before its mirror.
func (m *Manager) Settled(pod *core.Pod, status *runtimestate.PodStatus) bool {
	return m.config.Reported(pod) != nil || !slices.ContainsFunc(status.Containers, m.earlier)
}

// earlier says that an earlier kubelet started the container.
func (m *Manager) earlier(c *runtimestate.ContainerStatus) bool { return !c.StartedAt.After(m.started) }

// Results are those that decide about a container's life.
func (m *Manager) Results(id runtimestate.ContainerID) podactions.ProbeResults {
	m.mu.Lock()
	defer m.mu.Unlock()
	return podactions.ProbeResults{
		Liveness: m.results[resultKey{id, Liveness}],
		Startup:  m.results[resultKey{id, Startup}],
	}
}

func (m *Manager) result(id runtimestate.ContainerID, kind Kind) (podactions.ProbeResult, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	result, known := m.results[resultKey{id, kind}]
	return result, known
}

// statusOf is what was reported of the very same container.
func statusOf(reported *core.PodStatus, name string, id runtimestate.ContainerID) *core.ContainerStatus {
	if reported == nil {
		return nil
	}
	for status := range core.ContainerStatuses(reported) {
		if status.Name == name && status.ContainerID == id.String() {
			return status
		}
	}
	return nil
}
