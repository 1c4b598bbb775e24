package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/fscommon"

	"kctl/proto/core"
)

// Details are everything that monitors want to know about a group, under cAdvisor's
// metrics: of a container, of a pod with its sandbox, or of all pods of a class.
type Details struct {
	Usage  Usage
	CPU    CPUDetails
	Memory MemoryDetails
	// Tasks are the threads of the group and those below it, of which it may have MaxTasks; 0 for
	// no bound. Processes are the ids of its own.
	Tasks, MaxTasks uint64
	Processes       []int
	IO              map[string]DeviceIO
}

// CPUDetails are what a group may use of the processors, and how it got on with that.
type CPUDetails struct {
	User, System       uint64 // nanoseconds of all cores
	Periods, Throttled uint64 // periods in which it ran, and in which it was throttled
	ThrottledTime      uint64 // nanoseconds
	Bursts, BurstTime  uint64 // periods in which it used more than its quota, and the nanoseconds beyond it
	Shares             uint64 // as of cgroup v1
	Quota, Period      uint64 // microseconds; a quota of 0 for none
}

// MemoryDetails are kinds of a group's memory, in bytes, and what happened to it.
type MemoryDetails struct {
	Cache, Mapped            uint64 // files, and those of them that are mapped
	ActiveFile, InactiveFile uint64
	Dirty, Writeback         uint64 // of files; 0 with cgroup v1
	Kernel                   uint64
	Peak                     uint64 // the most that was used
	Reservation, SwapLimit   uint64 // 0 for none
	AtLimit, AtHigh, Killed  uint64 // how often it reached its limits, and processes were killed for it
	PagesScanned, PagesFreed uint64 // by the reclaim of memory; 0 with cgroup v1, as the next two
	RefaultsFile             uint64 // pages that were read again soon after that
	RefaultsAnonymous        uint64
}

// tick is the unit in which cgroup v1 counts CPU time (USER_HZ), in nanoseconds.
const tick = 1e9 / 100

// ContainerDetails are those of a running container in a pod's group, or of its sandbox, by the id.
func (m *Manager) ContainerDetails(pod *core.Pod, id string) (Details, error) {
	at, err := m.containerGroup(pod, id)
	if err != nil {
		return Details{}, err
	}
	return m.details(at)
}

// PodDetails are those of a pod, its sandbox included.
func (m *Manager) PodDetails(pod *core.Pod) (Details, error) { return m.detailsOf(podGroup(pod)) }

// ClassDetails are those of all pods together, and of the classes that have groups.
func (m *Manager) ClassDetails() (all []Details, err error) {
	for _, name := range []string{podsGroup, path.Join(podsGroup, burstableGroup), path.Join(podsGroup, bestEffortGroup)} {
		of, failed := m.detailsOf(name)
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		all = append(all, of)
	}
	return all, err
}

func (m *Manager) detailsOf(name string) (Details, error) {
	g, err := m.group(name, nil)
	if err != nil {
		return Details{}, err
	}
	return m.details(g.Path)
}

// details reads a group's, from the directories of its controllers.
func (m *Manager) details(at func(controller string) string) (d Details, err error) {
	unified := cgroups.IsCgroup2UnifiedMode()
	read := d.readV1
	if unified {
		read = d.readUnified
	}
	var stat map[string]uint64
	if d.Usage, stat, err = m.usageAt(at); err != nil {
		return d, err
	}
	failed := []error{read(at, stat)}
	d.IO, err = ioOf(at("blkio"), unified)
	failed = append(failed, err)
	d.Processes, err = cgroups.GetPids(at("pids"))
	failed = append(failed, err)
	d.MaxTasks = boundOf(at("pids"), "pids.max")
	d.Tasks, err = fscommon.GetCgroupParamUint(at("pids"), "pids.current")
	return d, errors.Join(append(failed, err)...)
}

// readUnified reads what cgroup v2 has in files of its own, from the directories of
// its controllers.
func (d *Details) readUnified(at func(controller string) string, stat map[string]uint64) error {
	dir := at("memory")
	cpu, cpuErr := keyed(at("cpu"), "cpu.stat")
	happened, eventsErr := keyed(dir, "memory.events")
	d.CPU = CPUDetails{
		User: cpu["user_usec"] * 1000, System: cpu["system_usec"] * 1000,
		Periods: cpu["nr_periods"], Throttled: cpu["nr_throttled"], ThrottledTime: cpu["throttled_usec"] * 1000,
		Bursts: cpu["nr_bursts"], BurstTime: cpu["burst_usec"] * 1000,
		Shares: sharesOf(countOf(at("cpu"), "cpu.weight")),
	}
	if quota, period, ok := strings.Cut(textOf(at("cpu"), "cpu.max"), " "); ok {
		d.CPU.Quota, d.CPU.Period = number(quota), number(period)
	}
	d.Memory = MemoryDetails{
		Cache: stat["file"], Mapped: stat["file_mapped"], ActiveFile: stat["active_file"], InactiveFile: stat["inactive_file"],
		Dirty: stat["file_dirty"], Writeback: stat["file_writeback"], Kernel: stat["kernel"],
		Peak:        countOf(dir, "memory.peak"), // Linux 5.19
		Reservation: countOf(dir, "memory.min"), SwapLimit: boundOf(dir, "memory.swap.max"),
		AtLimit: happened["max"], AtHigh: happened["high"], Killed: happened["oom_kill"],
		PagesScanned: stat["pgscan"], PagesFreed: stat["pgsteal"],
		RefaultsFile: stat["workingset_refault_file"], RefaultsAnonymous: stat["workingset_refault_anon"],
	}
	return errors.Join(cpuErr, eventsErr)
}

// readV1 is the same with cgroup v1.
func (d *Details) readV1(at func(controller string) string, stat map[string]uint64) error {
	dir := at("memory")
	cpu, cpuErr := keyed(at("cpu"), "cpu.stat")
	used, usedErr := keyed(at("cpuacct"), "cpuacct.stat")
	happened, eventsErr := keyed(dir, "memory.oom_control")
	d.CPU = CPUDetails{
		User: used["user"] * tick, System: used["system"] * tick,
		Periods: cpu["nr_periods"], Throttled: cpu["nr_throttled"], ThrottledTime: cpu["throttled_time"],
		Bursts: cpu["nr_bursts"], BurstTime: cpu["burst_time"],
		Shares: countOf(at("cpu"), "cpu.shares"),
		Quota:  number(textOf(at("cpu"), "cpu.cfs_quota_us")), Period: countOf(at("cpu"), "cpu.cfs_period_us"),
	}
	d.Memory = MemoryDetails{
		Cache: stat["total_cache"], Mapped: stat["total_mapped_file"],
		ActiveFile: stat["total_active_file"], InactiveFile: stat["total_inactive_file"],
		Kernel: countOf(dir, "memory.kmem.usage_in_bytes"), Peak: countOf(dir, "memory.max_usage_in_bytes"),
		Reservation: boundOf(dir, "memory.soft_limit_in_bytes"), SwapLimit: boundOf(dir, "memory.memsw.limit_in_bytes"),
		AtLimit: countOf(dir, "memory.failcnt"), Killed: happened["oom_kill"],
	}
	return errors.Join(cpuErr, usedErr, eventsErr)
}

// Process is the first process of a container, or of a pod's sandbox, by its id; 0 if
// there is none.
func (m *Manager) Process(pod *core.Pod, id string) (int, error) {
	at, err := m.containerGroup(pod, id)
	if err != nil {
		return 0, err
	}
	pids, err := cgroups.GetPids(at("memory"))
	if err != nil || len(pids) == 0 {
		return 0, err
	}
	return pids[0], nil
}

// containerGroup are the directories of a container in a pod's group, or of its sandbox, by the id:
// the runtime names the group after the id, with its own prefix and suffix.
func (m *Manager) containerGroup(pod *core.Pod, id string) (at func(controller string) string, err error) {
	g, err := m.group(podGroup(pod), nil)
	if err != nil {
		return nil, err
	}
	name, err := childOf(g.Path("memory"), id)
	return func(controller string) string { return filepath.Join(g.Path(controller), name) }, err
}

// childOf is the name of a container's group in a pod's.
func childOf(dir, id string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("looking for a container's control group: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() && strings.Contains(e.Name(), id) {
			return e.Name(), nil
		}
	}
	return "", fmt.Errorf("looking for a container's control group: %s has none of container %s", dir, id)
}
