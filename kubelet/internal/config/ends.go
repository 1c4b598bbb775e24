package config

import (
	"time"

	"kctl/kubelet/internal/eviction"
	"kctl/kubelet/internal/shutdown"
)

// Eviction is when the node evicts pods because it is short of something.
type Eviction struct {
	eviction.Settings
	MaxPodGracePeriod int32 // seconds, for soft thresholds
	// TransitionPeriod is how long the node's conditions stay after it was short.
	TransitionPeriod time.Duration
}

func newEviction() Eviction {
	return Eviction{Settings: eviction.Settings{Hard: eviction.DefaultHard()}, TransitionPeriod: 5 * time.Minute}
}

func (e *Eviction) validate(add report) {
	if _, err := e.Thresholds(); err != nil {
		add("%w", err)
	}
	if e.MaxPodGracePeriod < 0 || e.TransitionPeriod < 0 {
		add("evictionMaxPodGracePeriod and evictionPressureTransitionPeriod can't be negative")
	}
}

// Shutdown is how long pods get when the machine is shut down; if empty, as
// long as the system itself gives them.
type Shutdown struct {
	GracePeriod, CriticalPodsGracePeriod time.Duration // the second is part of the first
	GracePeriodByPodPriority             []shutdown.Period
}

// Periods are the pods' shares, by priority.
func (s Shutdown) Periods() ([]shutdown.Period, error) {
	return shutdown.Periods(s.GracePeriod, s.CriticalPodsGracePeriod, s.GracePeriodByPodPriority)
}

func (s Shutdown) validate(add report) {
	if _, err := s.Periods(); err != nil {
		add("%w", err)
	}
}
