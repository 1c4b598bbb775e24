package node

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// StartupPhase is a part of a machine's way from its start to a node that is ready, by
// the name of upstream's metric without "kubelet_".
type StartupPhase string

// The legs, in their order, and the whole way.
const (
	StartupPreKubelet       StartupPhase = "node_startup_pre_kubelet_duration_seconds"
	StartupPreRegistration  StartupPhase = "node_startup_pre_registration_duration_seconds"
	StartupRegistration     StartupPhase = "node_startup_registration_duration_seconds"
	StartupPostRegistration StartupPhase = "node_startup_post_registration_duration_seconds"
	Startup                 StartupPhase = "node_startup_duration_seconds"
)

// startup tells once how long each leg took. Only the kubelet that makes the Node
// tells: to one that comes back to its node these say nothing.
type startup struct {
	booted, begun   time.Time
	attempted, made time.Time
	ready           bool
	now             func() time.Time
	observe         func(StartupPhase, time.Duration)
}

// attempt notes that the Node is about to be made.
func (s *startup) attempt() {
	if s.attempted.IsZero() {
		s.attempted = s.now()
	}
}

// registered notes that the Node was made.
func (s *startup) registered() {
	if !s.made.IsZero() {
		return
	}
	s.made = s.now()
	if !s.booted.IsZero() {
		s.observe(StartupPreKubelet, s.begun.Sub(s.booted))
	}
	s.observe(StartupPreRegistration, s.attempted.Sub(s.begun))
	s.observe(StartupRegistration, s.made.Sub(s.attempted))
}

// isReady notes that the API knows the Node as ready.
func (s *startup) isReady() {
	if s.made.IsZero() || s.ready {
		return
	}
	s.ready = true
	now := s.now()
	s.observe(StartupPostRegistration, now.Sub(s.made))
	if !s.booted.IsZero() {
		s.observe(Startup, now.Sub(s.booted))
	}
}

func (m *Manager) noteReady(status *corev1.NodeStatus) {
	if statusOf(status, corev1.NodeReady) == corev1.ConditionTrue {
		m.startup.isReady()
	}
}
