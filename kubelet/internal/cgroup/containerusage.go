package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/fscommon"

	"kctl/proto/core"
)

// ContainerUsage is what a container's group reports and container runtimes do not.
type ContainerUsage struct {
	User, System        uint64 // nanoseconds of all cores
	Periods, Throttled  uint64 // periods in which it ran, and in which it was throttled
	ThrottledTime       uint64 // nanoseconds
	Cache, Mapped, Peak uint64 // bytes of memory: files, those of them that are mapped, and the most that was used
	Tasks, Processes    uint64 // threads included, and without
	Swap                uint64 // bytes
	AtLimit, Killed     uint64 // how often memory reached its limit, and processes were killed for it
	IO                  map[string]DeviceIO
	Pressure            Pressure
}

// tick is the unit in which cgroup v1 counts CPU time (USER_HZ), in nanoseconds.
const tick = 1e9 / 100

// ContainerUsage reads the usage of a running container in a pod's group, by its
// id: the runtime names the group after the id, with its own prefix and suffix.
func (m *Manager) ContainerUsage(pod *core.Pod, id string) (u ContainerUsage, err error) {
	g, err := m.group(podGroup(pod), nil)
	if err != nil {
		return u, err
	}
	name, err := childOf(g.Path("memory"), id)
	if err != nil {
		return u, err
	}
	at := func(controller string) string { return filepath.Join(g.Path(controller), name) }
	read, peak, unified := u.readV1, "memory.max_usage_in_bytes", cgroups.IsCgroup2UnifiedMode()
	if unified {
		read, peak = u.readUnified, "memory.peak"
	}
	failed := []error{read(at)}
	u.IO, err = ioOf(at("blkio"), unified)
	failed = append(failed, err)
	u.Pressure, err = pressureOf(at("memory"))
	failed = append(failed, err)
	pids, err := cgroups.GetPids(at("pids"))
	u.Processes, failed = uint64(len(pids)), append(failed, err)
	if u.Peak, err = fscommon.GetCgroupParamUint(at("memory"), peak); !errors.Is(err, fs.ErrNotExist) { // Linux before 5.19
		failed = append(failed, err)
	}
	u.Tasks, err = fscommon.GetCgroupParamUint(at("pids"), "pids.current")
	return u, errors.Join(append(failed, err)...)
}

// readUnified reads what cgroup v2 has in files of its own, from the directories of
// its controllers.
func (u *ContainerUsage) readUnified(at func(controller string) string) error {
	cpu, cpuErr := keyed(at("cpu"), "cpu.stat")
	memory, memoryErr := keyed(at("memory"), "memory.stat")
	happened, eventsErr := keyed(at("memory"), "memory.events")
	u.Periods, u.Throttled, u.ThrottledTime = cpu["nr_periods"], cpu["nr_throttled"], cpu["throttled_usec"]*1000
	u.User, u.System = cpu["user_usec"]*1000, cpu["system_usec"]*1000
	u.Cache, u.Mapped = memory["file"], memory["file_mapped"]
	u.Swap = countOf(at("memory"), "memory.swap.current")
	u.AtLimit, u.Killed = happened["max"], happened["oom_kill"]
	return errors.Join(cpuErr, memoryErr, eventsErr)
}

// readV1 is the same with cgroup v1.
func (u *ContainerUsage) readV1(at func(controller string) string) error {
	cpu, cpuErr := keyed(at("cpu"), "cpu.stat")
	used, usedErr := keyed(at("cpuacct"), "cpuacct.stat")
	memory, memoryErr := keyed(at("memory"), "memory.stat")
	happened, eventsErr := keyed(at("memory"), "memory.oom_control")
	u.Periods, u.Throttled, u.ThrottledTime = cpu["nr_periods"], cpu["nr_throttled"], cpu["throttled_time"]
	u.User, u.System = used["user"]*tick, used["system"]*tick
	u.Cache, u.Mapped, u.Swap = memory["total_cache"], memory["total_mapped_file"], memory["total_swap"]
	u.AtLimit, u.Killed = countOf(at("memory"), "memory.failcnt"), happened["oom_kill"]
	return errors.Join(cpuErr, usedErr, memoryErr, eventsErr)
}

// countOf reads a number that not every kernel has.
func countOf(dir, file string) uint64 {
	n, _ := fscommon.GetCgroupParamUint(dir, file)
	return n
}

// Process is the first process of a container, or of a pod's sandbox, by its id; 0 if
// there is none.
func (m *Manager) Process(pod *core.Pod, id string) (int, error) {
	g, err := m.group(podGroup(pod), nil)
	if err != nil {
		return 0, err
	}
	dir := g.Path("memory")
	name, err := childOf(dir, id)
	if err != nil {
		return 0, err
	}
	pids, err := cgroups.GetPids(filepath.Join(dir, name))
	if err != nil || len(pids) == 0 {
		return 0, err
	}
	return pids[0], nil
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

// keyed reads a file of lines with a name and a number each.
func keyed(dir, file string) (map[string]uint64, error) {
	text, err := cgroups.ReadFile(dir, file)
	if err != nil {
		return nil, fmt.Errorf("asking what a control group uses: %w", err)
	}
	values := map[string]uint64{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			values[key] = n
		}
	}
	return values, nil
}
