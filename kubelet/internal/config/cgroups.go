package config

import (
	"time"

	"kctl/kubelet/internal/cgroup"
)

// Cgroups are the control groups of pods, and what is limited in them.
type Cgroups struct {
	Driver            string
	Root              string
	PerQOS            bool
	FailV1            bool
	CPUCFSQuota       bool // limits of cpu are enforced
	CPUCFSQuotaPeriod time.Duration
	// MemoryQoS is what protects and slows down containers, with cgroup v2.
	MemoryQoS cgroup.MemoryQoS
	// LimitedSwap lets containers of burstable pods swap, with cgroup v2.
	LimitedSwap bool
	// SingleProcessOOMKill makes the kernel kill one process of a container that is out of
	// memory, instead of all, where it can kill all (cgroup v2).
	SingleProcessOOMKill bool
}

func newCgroups() Cgroups {
	return Cgroups{Driver: cgroup.Cgroupfs, PerQOS: true, CPUCFSQuota: true, CPUCFSQuotaPeriod: 100 * time.Millisecond}
}

func (c *Cgroups) validate(add report) {
	if c.Driver != cgroup.Cgroupfs && c.Driver != cgroup.Systemd {
		add("--cgroup-driver=%q: there are %s and %s", c.Driver, cgroup.Cgroupfs, cgroup.Systemd)
	}
	if f := c.MemoryQoS.ThrottlingFactor; f < 0 || f > 1 {
		add("memoryThrottlingFactor=%v: it must be greater than 0 and at most 1", f)
	}
	if p := c.CPUCFSQuotaPeriod; p != 0 && (p < time.Millisecond || p > time.Second) {
		add("--cpu-cfs-quota-period=%s: it must be between 1ms and 1s", p)
	}
}
