package podruntime

import (
	"context"
	"slices"
	"time"

	"kctl/kubelet/internal/cri"
	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/backoff"
)

// publish changes the status and reports it.
func (s *podSync) publish(change func(*runtimestate.PodStatus)) { s.record(change, true) }

// record changes the status. It is reported with the next change that is
// published, or when SyncPod is over.
func (s *podSync) record(change func(*runtimestate.PodStatus), tell bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.status.Clone()
	change(next)
	next.At = s.Clock.Now()
	next.Sort()
	s.status = next
	if s.untold = !tell; tell && s.options.Changed != nil {
		s.options.Changed(next)
	}
}

// restartTime is how long a restarting container may be reported in its old state.
// Upstream's kubelet reports nothing about a pod during a restart, and clients
// (including the conformance tests) expect that a ready pod whose container is
// replaced is ready again at once, or never stops being so.
const restartTime = time.Second

// publishLater reports what was recorded if nothing else has by then.
func (s *podSync) publishLater() {
	s.background.Go(func() {
		if backoff.Sleep(s.beside, s.Clock, restartTime) != nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.untold && s.options.Changed != nil {
			s.options.Changed(s.status)
		}
		s.untold = false
	})
}

// current is the status with everything that was done until now.
func (s *podSync) current() *runtimestate.PodStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// refresh puts the runtime's state of one container into the status, and reports
// it.
func (s *podSync) refresh(id string) {
	if now := s.look(id); now != nil {
		s.publish(with(now))
	}
}

// findCreated puts a created container into the status that is not known: its name is in use,
// and the next sync has to remove it. A creation that failed may have been done and not answered,
// now or in an earlier sync.
func (s *podSync) findCreated(name string) {
	status, err := s.state.PodStatus(context.WithoutCancel(s.ctx), s.pod.UID, s.pod.Name, s.pod.Namespace)
	if err != nil {
		return // as with look
	}
	for _, c := range status.Containers {
		if c.Name == name && c.State == runtimestate.StateCreated && s.current().ContainerByID(c.ID) == nil {
			s.publish(with(c))
		}
	}
}

// look asks the runtime for one container. If that fails, it returns nil, and
// the status stays as it is until the runtime is listed again.
func (s *podSync) look(id string) *runtimestate.ContainerStatus {
	sandboxID := s.sandboxID
	if before := s.current().ContainerByID(s.state.ContainerID(id)); before != nil {
		sandboxID = before.SandboxID
	}
	now, err := s.state.Container(context.WithoutCancel(s.ctx), id, sandboxID)
	if err != nil {
		return nil
	}
	return now
}

// with puts a container's current state into the status.
func with(now *runtimestate.ContainerStatus) func(*runtimestate.PodStatus) {
	return func(status *runtimestate.PodStatus) {
		without(now.ID)(status)
		status.Containers = append(status.Containers, now)
	}
}

// without takes a container that is removed out of the status.
func without(id runtimestate.ContainerID) func(*runtimestate.PodStatus) {
	return func(status *runtimestate.PodStatus) {
		status.Containers = slices.DeleteFunc(status.Containers, func(c *runtimestate.ContainerStatus) bool { return c.ID == id })
	}
}

func (s *podSync) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, err)
}

// wait records why a container does not run, and when to look again. The reason may be as
// long as a hook's command, or as what its server answered, and becomes part of the
// pod's status, which the API takes as a whole or not at all.
func (s *podSync) wait(container, reason, message string, retryAfter time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[container] = runtimestate.Waiting{Reason: reason, Message: cri.Shorten(message)}
	if retryAfter > 0 && (s.retryAfter == 0 || retryAfter < s.retryAfter) {
		s.retryAfter = retryAfter
	}
}

// started records that a container runs.
func (s *podSync) started(container string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[container] = runtimestate.Waiting{}
}
