package server

import (
	"fmt"
	"strings"
	"time"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/node"
)

// addUsage adds what a group uses.
func (f samples) addUsage(u cgroup.Usage, now time.Time, r row) {
	ms, of := now.UnixMilli(), r.of()
	f.add("container_last_seen", of, fmt.Sprint(now.Unix()), ms)
	f.add("container_cpu_usage_seconds_total", r.of("cpu", "total"), seconds(u.CPU), ms)
	f.add("container_memory_usage_bytes", of, fmt.Sprint(u.Memory), ms)
	f.add("container_memory_working_set_bytes", of, fmt.Sprint(u.WorkingSet), ms)
	f.add("container_memory_rss", of, fmt.Sprint(u.RSS), ms)
	for _, scope := range []string{"container", "hierarchy"} {
		f.add("container_memory_failures_total", r.of("failure_type", "pgfault", "scope", scope), fmt.Sprint(u.PageFaults), ms)
		f.add("container_memory_failures_total", r.of("failure_type", "pgmajfault", "scope", scope), fmt.Sprint(u.MajorPageFaults), ms)
	}
	f.addStart(u.Started, of)
	f.add("container_health_state", of, healthUnknown, ms)
	f.addPressure(u.Pressure, ms, r.of)
}

// healthUnknown is cAdvisor's word for what has no health check of the runtime's, as no container of
// a pod has.
const healthUnknown = "-1"

// addStart adds when a container or group was started, if it is known.
func (f samples) addStart(at time.Time, of string) {
	if !at.IsZero() {
		f.plain("container_start_time_seconds", of, fmt.Sprint(at.Unix()))
	}
}

// addDetails adds everything that a group reports.
func (f samples) addDetails(d cgroup.Details, now time.Time, r row) {
	ms, of := now.UnixMilli(), r.of()
	f.addUsage(d.Usage, now, r)
	f.addCPU(d.CPU, ms, of)
	f.addMemory(d.Memory, ms, of)
	f.add("container_memory_swap", of, fmt.Sprint(d.Usage.Swap), ms)
	f.plain("container_creation_time_seconds", of, fmt.Sprint(d.Usage.Started.Unix()))
	f.plain("container_spec_memory_limit_bytes", of, fmt.Sprint(d.Usage.Limit))
	files, sockets, told := node.OpenFiles(d.Processes)
	if told {
		f.add("container_sockets", of, fmt.Sprint(sockets), ms)
	}
	for metric, count := range map[string]uint64{
		"container_processes": uint64(len(d.Processes)), "container_threads": d.Tasks, "container_threads_max": d.MaxTasks,
		"container_file_descriptors": files,
	} {
		f.add(metric, of, fmt.Sprint(count), ms)
	}
	if len(d.Processes) > 0 {
		if limit, known := node.OpenFilesLimit(d.Processes[0]); known {
			f.add("container_ulimits_soft", r.of("ulimit", "max_open_files"), fmt.Sprint(limit), ms)
		}
	}
	for device, used := range d.IO {
		f.add("container_fs_reads_total", r.of("device", device), fmt.Sprint(used.Reads), ms)
		f.add("container_fs_reads_bytes_total", r.of("device", device), fmt.Sprint(used.ReadBytes), ms)
		f.add("container_fs_writes_total", r.of("device", device), fmt.Sprint(used.Writes), ms)
		f.add("container_fs_writes_bytes_total", r.of("device", device), fmt.Sprint(used.WriteBytes), ms)
		major, minor, _ := strings.Cut(used.Number, ":")
		for operation, bytes := range map[string]uint64{"Read": used.ReadBytes, "Write": used.WriteBytes} {
			f.add("container_blkio_device_usage_total", r.of("device", device, "major", major, "minor", minor, "operation", operation),
				fmt.Sprint(bytes), ms)
		}
	}
}

// addDisk adds what the machine's disk has done, in seconds where the name says so: cAdvisor divides
// milliseconds by as much as nanoseconds.
func (f samples) addDisk(d node.DiskIO, ms int64, of string) {
	for metric, count := range map[string]uint64{
		"container_fs_reads_total": d.Reads, "container_fs_reads_merged_total": d.ReadsMerged, "container_fs_sector_reads_total": d.SectorsRead,
		"container_fs_writes_total": d.Writes, "container_fs_writes_merged_total": d.WritesMerged,
		"container_fs_sector_writes_total": d.SectorsWritten,
		"container_fs_io_current":          d.InProgress,
	} {
		f.add(metric, of, fmt.Sprint(count), ms)
	}
	for metric, spent := range map[string]uint64{
		"container_fs_read_seconds_total": d.ReadTime, "container_fs_write_seconds_total": d.WriteTime,
		"container_fs_io_time_seconds_total": d.Busy, "container_fs_io_time_weighted_seconds_total": d.WeightedBusy,
	} {
		f.add(metric, of, seconds(spent), ms)
	}
}

// addCPU has the figures of a quota only where there is one, as cAdvisor has them.
func (f samples) addCPU(c cgroup.CPUDetails, ms int64, of string) {
	f.add("container_cpu_user_seconds_total", of, seconds(c.User), ms)
	f.add("container_cpu_system_seconds_total", of, seconds(c.System), ms)
	f.plain("container_spec_cpu_shares", of, fmt.Sprint(c.Shares))
	f.plain("container_spec_cpu_period", of, fmt.Sprint(c.Period))
	if c.Quota == 0 {
		return
	}
	f.plain("container_spec_cpu_quota", of, fmt.Sprint(c.Quota))
	f.add("container_cpu_cfs_periods_total", of, fmt.Sprint(c.Periods), ms)
	f.add("container_cpu_cfs_throttled_periods_total", of, fmt.Sprint(c.Throttled), ms)
	f.add("container_cpu_cfs_throttled_seconds_total", of, seconds(c.ThrottledTime), ms)
	f.add("container_cpu_cfs_burst_periods_total", of, fmt.Sprint(c.Bursts), ms)
	f.add("container_cpu_cfs_burst_seconds_total", of, seconds(c.BurstTime), ms)
}

func (f samples) addMemory(m cgroup.MemoryDetails, ms int64, of string) {
	for metric, amount := range map[string]uint64{
		"container_memory_cache": m.Cache, "container_memory_mapped_file": m.Mapped,
		"container_memory_total_active_file_bytes": m.ActiveFile, "container_memory_total_inactive_file_bytes": m.InactiveFile,
		"container_memory_file_dirty_bytes": m.Dirty, "container_memory_file_writeback_bytes": m.Writeback,
		"container_memory_kernel_usage": m.Kernel, "container_memory_max_usage_bytes": m.Peak,
		"container_memory_failcnt": m.AtLimit, "container_memory_events_max_total": m.AtLimit, "container_memory_events_high_total": m.AtHigh,
		"container_oom_events_total":    m.Killed,
		"container_memory_pgscan_total": m.PagesScanned, "container_memory_pgsteal_total": m.PagesFreed,
		"container_memory_workingset_refault_file_total": m.RefaultsFile, "container_memory_workingset_refault_anon_total": m.RefaultsAnonymous,
	} {
		f.add(metric, of, fmt.Sprint(amount), ms)
	}
	f.plain("container_spec_memory_reservation_limit_bytes", of, fmt.Sprint(m.Reservation))
	f.plain("container_spec_memory_swap_limit_bytes", of, fmt.Sprint(m.SwapLimit))
}
