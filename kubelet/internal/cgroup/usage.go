package cgroup

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/fscommon"

	"kctl/proto/core"
)

// Usage is what a group uses, with all below it.
type Usage struct {
	// Path is the group's, below the mounts of the hierarchies; cAdvisor calls it the id.
	Path       string
	CPU        uint64 // nanoseconds of all cores
	Memory     uint64 // bytes
	WorkingSet uint64 // bytes of it that the kernel would not reclaim first
	RSS        uint64 // bytes of processes that belong to no file
	Swap       uint64 // bytes
	Limit      uint64 // bytes of memory; 0 for none
	Pressure   Pressure
	// Started is when its directory was last changed, which cAdvisor uses for that.
	Started time.Time
	// PageFaults are those of its processes.
	PageFaults, MajorPageFaults uint64
}

// unifiedMount is where the one hierarchy of cgroup v2 is.
const unifiedMount = "/sys/fs/cgroup"

// unlimited is more memory than any group of cgroup v1 can be limited to.
const unlimited = 1 << 62

// files are the names of the files that are read in a group, by version.
type files struct{ usage, limit, inactive, rss, swap, faults, major string }

var (
	filesOfV1 = files{"memory.usage_in_bytes", "memory.limit_in_bytes", "total_inactive_file", "total_rss", "total_swap", "total_pgfault",
		"total_pgmajfault"}
	filesOfV2 = files{"memory.current", "memory.max", "inactive_file", "anon", "", "pgfault", "pgmajfault"}
)

// Usage is what a pod uses, its sandbox included.
func (m *Manager) Usage(pod *core.Pod) (Usage, error) { return m.usage(podGroup(pod)) }

// ContainerUsage is what a running container in a pod's group uses, or its sandbox, by the id.
func (m *Manager) ContainerUsage(pod *core.Pod, id string) (Usage, error) {
	at, err := m.containerGroup(pod, id)
	if err != nil {
		return Usage{}, err
	}
	u, _, err := m.usageAt(at)
	return u, err
}

// UsageOfPods is what all pods use together.
func (m *Manager) UsageOfPods() (Usage, error) { return m.usage(podsGroup) }

func (m *Manager) usage(name string) (u Usage, err error) {
	g, err := m.group(name, nil)
	if err != nil {
		return u, err
	}
	u, _, err = m.usageAt(g.Path)
	return u, err
}

// usageAt reads a group's usage from the directories of its controllers, and the whole of what
// it tells about memory.
func (m *Manager) usageAt(at func(controller string) string) (u Usage, stat map[string]uint64, err error) {
	memory, cpu, mount := at("memory"), at("cpuacct"), cmp.Or(m.mounts["memory"], unifiedMount+"/memory")
	if cgroups.IsCgroup2UnifiedMode() {
		cpu, mount = at("cpu"), unifiedMount
	}
	u, stat, err = usageIn(memory, cpu)
	u.Path = strings.TrimPrefix(memory, mount)
	return u, stat, err
}

// UsageOfProcess is the usage of the group that a process is in, such as a daemon's
// service. It returns false if the process has no group of its own for both memory
// and CPU, and is in the whole machine's.
func UsageOfProcess(pid int) (u Usage, known bool, err error) {
	groups, err := cgroups.ParseCgroupFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return u, false, fmt.Errorf("asking for the control group of process %d: %w", pid, err)
	}
	memory, cpu := "memory", "cpuacct"
	if cgroups.IsCgroup2UnifiedMode() {
		memory, cpu = "", ""
	}
	group := groups[memory]
	if group == "/" || group == "" || groups[cpu] != group {
		return u, false, nil
	}
	dir := func(controller string) string {
		if controller == "" {
			return filepath.Join(unifiedMount, group)
		}
		mount, failed := cgroups.FindCgroupMountpoint("", controller)
		err = errors.Join(err, failed)
		return filepath.Join(mount, group)
	}
	ofMemory, ofCPU := dir(memory), dir(cpu)
	if err != nil {
		return u, false, fmt.Errorf("asking for the control group of process %d: %w", pid, err)
	}
	u, _, err = usageIn(ofMemory, ofCPU)
	u.Path = group
	return u, err == nil, err
}

// usageIn reads the usage from a group's directories, of which there may be only one.
func usageIn(memory, cpu string) (u Usage, stat map[string]uint64, err error) {
	if u, stat, err = memoryOf(memory); err != nil {
		return u, stat, err
	}
	if cgroups.IsCgroup2UnifiedMode() {
		u.CPU, err = fscommon.GetValueByKey(cpu, "cpu.stat", "usage_usec")
		u.CPU *= 1000
	} else {
		u.CPU, err = fscommon.GetCgroupParamUint(cpu, "cpuacct.usage")
	}
	if err != nil {
		return u, stat, fmt.Errorf("asking how much of the processors is used: %w", err)
	}
	u.Pressure, err = pressureOf(memory)
	return u, stat, err
}

// memoryOf reads everything but CPU time from a group's directory.
func memoryOf(dir string) (u Usage, stat map[string]uint64, err error) {
	of := filesOfV1
	if cgroups.IsCgroup2UnifiedMode() {
		of = filesOfV2
	}
	if u.Memory, err = fscommon.GetCgroupParamUint(dir, of.usage); err != nil {
		return u, nil, fmt.Errorf("asking how much memory is used: %w", err)
	}
	if u.Limit, err = fscommon.GetCgroupParamUint(dir, of.limit); err != nil { // for "max", the largest number
		return u, nil, fmt.Errorf("asking how much memory may be used: %w", err)
	}
	if u.Limit > unlimited {
		u.Limit = 0
	}
	if made, err := os.Stat(dir); err == nil {
		u.Started = made.ModTime()
	}
	if stat, err = keyed(dir, "memory.stat"); err != nil {
		return u, nil, err
	}
	u.RSS, u.PageFaults, u.MajorPageFaults = stat[of.rss], stat[of.faults], stat[of.major]
	u.WorkingSet = u.Memory - min(u.Memory, stat[of.inactive])
	u.Swap = of.swapOf(dir, stat)
	return u, stat, nil
}

// swapOf is what a group has in swap, which cgroup v2 tells in a file of its own.
func (f files) swapOf(dir string, stat map[string]uint64) uint64 {
	if f.swap == "" {
		return countOf(dir, "memory.swap.current")
	}
	return stat[f.swap]
}
