package cgroup

import (
	"fmt"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/fscommon"

	"kctl/proto/core"
)

// Usage is what a group uses, with all below it.
type Usage struct {
	CPU        uint64 // nanoseconds of all cores
	Memory     uint64 // bytes
	WorkingSet uint64 // bytes of it that the kernel does not take back first
	RSS        uint64 // bytes of processes that are no file's
	Limit      uint64 // bytes of memory; 0 for none
	Pressure   Pressure
}

// unlimited is more memory than any group of cgroup v1 can be held to.
const unlimited = 1 << 62

// files are what a hierarchy calls what is read of a group, by its version.
type files struct{ usage, limit, inactive, rss string }

var (
	filesOfV1 = files{"memory.usage_in_bytes", "memory.limit_in_bytes", "total_inactive_file", "total_rss"}
	filesOfV2 = files{"memory.current", "memory.max", "inactive_file", "anon"}
)

// Usage is what a pod uses, its sandbox included.
func (m *Manager) Usage(pod *core.Pod) (Usage, error) { return m.usage(podGroup(pod)) }

// UsageOfPods is what all pods use together.
func (m *Manager) UsageOfPods() (Usage, error) { return m.usage(podsGroup) }

func (m *Manager) usage(name string) (u Usage, err error) {
	g, err := m.group(name, nil)
	if err != nil {
		return u, err
	}
	if u, err = memoryOf(g.Path("memory")); err != nil {
		return u, err
	}
	if cgroups.IsCgroup2UnifiedMode() {
		u.CPU, err = fscommon.GetValueByKey(g.Path(""), "cpu.stat", "usage_usec")
		u.CPU *= 1000
	} else {
		u.CPU, err = fscommon.GetCgroupParamUint(g.Path("cpuacct"), "cpuacct.usage")
	}
	if err != nil {
		return u, fmt.Errorf("asking how much of the processors is used: %w", err)
	}
	u.Pressure, err = pressureOf(g.Path("memory"))
	return u, err
}

// memoryOf reads of a group's directory all but the use of processors.
func memoryOf(dir string) (u Usage, err error) {
	of := filesOfV1
	if cgroups.IsCgroup2UnifiedMode() {
		of = filesOfV2
	}
	if u.Memory, err = fscommon.GetCgroupParamUint(dir, of.usage); err != nil {
		return u, fmt.Errorf("asking how much memory is used: %w", err)
	}
	if u.Limit, err = fscommon.GetCgroupParamUint(dir, of.limit); err != nil { // of "max" it is the most that there is
		return u, fmt.Errorf("asking how much memory may be used: %w", err)
	}
	if u.Limit > unlimited {
		u.Limit = 0
	}
	stat, err := keyed(dir, "memory.stat")
	if err != nil {
		return u, err
	}
	u.RSS = stat[of.rss]
	u.WorkingSet = u.Memory - min(u.Memory, stat[of.inactive])
	return u, nil
}
