package status

import (
	"kctl/proto/core"
	"kctl/proto/relay"
)

// Restarting notes what becomes known of a container's restart. It goes with the next status.
func (m *Manager) Restarting(pod *core.Pod, known relay.Restart) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entry(pod)
	if known.Cause == relay.CauseExit && known.Ended.Before(e.since) {
		known.Cause = "" // an earlier kubelet may have ended it
	}
	e.restarts.Note(known)
}

// stampReady notes which of the containers that were restarted are ready again.
func (m *Manager) stampReady(e *entry, status *core.PodStatus) {
	if e.restarts.Empty() {
		return
	}
	for c := range core.ContainerStatuses(status) {
		if r := e.restarts.Find(c.Name, c.RestartCount); r != nil && c.Ready && !r.Started.IsZero() && r.Ready.IsZero() {
			r.Ready = m.options.Clock.Now()
		}
	}
}
