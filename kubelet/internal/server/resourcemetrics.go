package server

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelettypes "k8s.io/kubelet/pkg/types"

	"kctl/kubelet/internal/cgroup"
	"kctl/proto/core"
)

// resourceMetrics answers with the few figures that metrics pipelines need, in
// Prometheus' text format and under upstream's names (Kubernetes docs, "Node
// metrics data": /metrics/resource).
func (s *Server) resourceMetrics(c *gin.Context) {
	all, ok := s.measure(c)
	if !ok {
		return
	}
	f := samples{}
	f.addContainers(all, s.Stats.Groups, s.Clock.Now())
	f.addStarts(all, s.Status)
	failed := 0
	if s.Stats.Usage != nil {
		usage, err := s.Stats.Usage()
		if err != nil {
			failed = 1
		} else {
			at := usage.At.UnixMilli()
			f.add("node_cpu_usage_seconds_total", "", seconds(usage.CPU), at)
			f.add("node_memory_working_set_bytes", "", fmt.Sprint(usage.WorkingSet), at)
			f.add("node_swap_usage_bytes", "", fmt.Sprint(usage.Swap-min(usage.Swap, usage.SwapFree)), at)
		}
	}
	f.plain("resource_scrape_error", "", fmt.Sprint(failed))
	f.answer(c)
}

// kinds are the metrics with their help text.
var kinds = map[string]struct{ kind, help string }{
	"node_cpu_usage_seconds_total":       {"counter", "Cumulative cpu time consumed by the node in core-seconds"},
	"node_memory_working_set_bytes":      {"gauge", "Current working set of the node in bytes"},
	"pod_cpu_usage_seconds_total":        {"counter", "Cumulative cpu time consumed by the pod in core-seconds"},
	"pod_memory_working_set_bytes":       {"gauge", "Current working set of the pod in bytes"},
	"container_cpu_usage_seconds_total":  {"counter", "Cumulative cpu time consumed by the container in core-seconds"},
	"container_memory_working_set_bytes": {"gauge", "Current working set of the container in bytes"},
	"container_start_time_seconds":       {"gauge", "Start time of the container since unix epoch in seconds"},
	"container_swap_limit_bytes":         {"gauge", "Current amount of the container swap limit in bytes"},
	"container_swap_usage_bytes":         {"gauge", "Current amount of the container swap usage in bytes"},
	"pod_swap_usage_bytes":               {"gauge", "Current amount of the pod swap usage in bytes"},
	"node_swap_usage_bytes":              {"gauge", "Current swap usage of the node in bytes"},
	"container_creation_time_seconds":    {"gauge", "When the container's control group was made, since unix epoch in seconds."},
	"container_last_seen":                {"gauge", "Last time a container was seen by the exporter"},
	"container_memory_usage_bytes": {"gauge",
		"Current memory usage in bytes, including all memory regardless of when it was accessed"},
	"container_memory_rss":                           {"gauge", "Size of RSS in bytes."},
	"container_memory_swap":                          {"gauge", "Container swap usage in bytes."},
	"container_cpu_user_seconds_total":               {"counter", "Cumulative user cpu time consumed in seconds."},
	"container_cpu_system_seconds_total":             {"counter", "Cumulative system cpu time consumed in seconds."},
	"container_cpu_cfs_periods_total":                {"counter", "Number of elapsed enforcement period intervals."},
	"container_cpu_cfs_throttled_periods_total":      {"counter", "Number of throttled period intervals."},
	"container_cpu_cfs_throttled_seconds_total":      {"counter", "Total time duration the container has been throttled."},
	"container_cpu_cfs_burst_periods_total":          {"counter", "Number of periods when burst occurs."},
	"container_cpu_cfs_burst_seconds_total":          {"counter", "Total time beyond the quota in bursts."},
	"container_memory_cache":                         {"gauge", "Number of bytes of page cache memory."},
	"container_memory_mapped_file":                   {"gauge", "Size of memory mapped files in bytes."},
	"container_memory_max_usage_bytes":               {"gauge", "Maximum memory usage recorded in bytes"},
	"container_memory_total_active_file_bytes":       {"gauge", "Current total active file in bytes."},
	"container_memory_total_inactive_file_bytes":     {"gauge", "Current total inactive file in bytes."},
	"container_memory_file_dirty_bytes":              {"gauge", "Bytes of files that were changed and are not on their disk yet."},
	"container_memory_file_writeback_bytes":          {"gauge", "Bytes of files that are being written to their disk."},
	"container_memory_kernel_usage":                  {"gauge", "Size of kernel memory allocated in bytes."},
	"container_memory_events_max_total":              {"counter", "How often the container's memory reached its limit."},
	"container_memory_events_high_total":             {"counter", "How often the container was throttled for its memory."},
	"container_memory_pgscan_total":                  {"counter", "Pages that the reclaim of memory has looked at."},
	"container_memory_pgsteal_total":                 {"counter", "Pages that the reclaim of memory has freed."},
	"container_memory_workingset_refault_file_total": {"counter", "Pages of files that were read again soon after their eviction."},
	"container_memory_workingset_refault_anon_total": {"counter", "Other pages that were read again soon after their eviction."},
	"container_threads_max": {"gauge",
		"Maximum number of threads allowed inside the container, infinity if value is zero"},
	"container_file_descriptors":                      {"gauge", "Number of open file descriptors for the container."},
	"container_ulimits_soft":                          {"gauge", "Soft ulimit values for the container root process. Unlimited if -1"},
	"container_sockets":                               {"gauge", "Number of open sockets for the container."},
	"container_threads":                               {"gauge", "Number of threads running inside the container"},
	"container_memory_failures_total":                 {"counter", "Cumulative count of memory allocation failures."},
	"container_fs_usage_bytes":                        {"gauge", "Number of bytes that are consumed by the container on this filesystem."},
	"container_fs_limit_bytes":                        {"gauge", "Number of bytes that can be consumed by the container on this filesystem."},
	"container_fs_inodes_free":                        {"gauge", "Number of available Inodes"},
	"container_fs_inodes_total":                       {"gauge", "Number of Inodes"},
	"container_processes":                             {"gauge", "Number of processes running inside the container."},
	"container_memory_failcnt":                        {"counter", "Number of memory usage hits limits"},
	"container_oom_events_total":                      {"counter", "Count of out of memory events observed for the container"},
	"container_blkio_device_usage_total":              {"counter", "Blkio Device bytes usage"},
	"container_fs_reads_total":                        {"counter", "Cumulative count of reads completed"},
	"container_fs_reads_bytes_total":                  {"counter", "Cumulative count of bytes read"},
	"container_fs_writes_total":                       {"counter", "Cumulative count of writes completed"},
	"container_fs_writes_bytes_total":                 {"counter", "Cumulative count of bytes written"},
	"container_fs_reads_merged_total":                 {"counter", "Cumulative count of reads merged"},
	"container_fs_writes_merged_total":                {"counter", "Cumulative count of writes merged"},
	"container_fs_sector_reads_total":                 {"counter", "Cumulative count of sector reads completed"},
	"container_fs_sector_writes_total":                {"counter", "Cumulative count of sector writes completed"},
	"container_fs_read_seconds_total":                 {"counter", "Cumulative count of seconds spent reading"},
	"container_fs_write_seconds_total":                {"counter", "Cumulative count of seconds spent writing"},
	"container_fs_io_current":                         {"gauge", "Number of I/Os currently in progress"},
	"container_fs_io_time_seconds_total":              {"counter", "Cumulative count of seconds spent doing I/Os"},
	"container_fs_io_time_weighted_seconds_total":     {"counter", "Cumulative weighted I/O time in seconds"},
	"container_health_state":                          {"gauge", "The result of the container's health check"},
	"container_spec_cpu_shares":                       {"gauge", "CPU share of the container."},
	"container_pressure_cpu_waiting_seconds_total":    {"counter", "Total time that tasks of the container have waited for cpu."},
	"container_pressure_cpu_stalled_seconds_total":    {"counter", "Total time that no task of the container could go on for want of cpu."},
	"container_pressure_memory_waiting_seconds_total": {"counter", "Total time that tasks of the container have waited for memory."},
	"container_pressure_memory_stalled_seconds_total": {"counter",
		"Total time that no task of the container could go on for want of memory."},
	"container_pressure_io_waiting_seconds_total":      {"counter", "Total time that tasks of the container have waited for io."},
	"container_pressure_io_stalled_seconds_total":      {"counter", "Total time that no task of the container could go on for want of io."},
	"container_spec_memory_limit_bytes":                {"gauge", "Memory limit for the container."},
	"container_spec_memory_reservation_limit_bytes":    {"gauge", "Memory reservation limit for the container."},
	"container_spec_memory_swap_limit_bytes":           {"gauge", "Memory swap limit for the container."},
	"container_spec_cpu_quota":                         {"gauge", "CPU quota of the container."},
	"container_spec_cpu_period":                        {"gauge", "CPU period of the container."},
	"container_network_receive_bytes_total":            {"counter", "Cumulative count of bytes received"},
	"container_network_receive_errors_total":           {"counter", "Cumulative count of errors encountered while receiving"},
	"container_network_receive_packets_total":          {"counter", "Cumulative count of packets received"},
	"container_network_receive_packets_dropped_total":  {"counter", "Cumulative count of packets dropped while receiving"},
	"container_network_transmit_packets_total":         {"counter", "Cumulative count of packets transmitted"},
	"container_network_transmit_packets_dropped_total": {"counter", "Cumulative count of packets dropped while transmitting"},
	"container_network_transmit_bytes_total":           {"counter", "Cumulative count of bytes transmitted"},
	"container_network_transmit_errors_total":          {"counter", "Cumulative count of errors encountered while transmitting"},
	"container_scrape_error":                           {"gauge", "1 if there was an error while getting container metrics, 0 otherwise"},
	"machine_cpu_cores":                                {"gauge", "Number of logical CPU cores."},
	"machine_cpu_physical_cores":                       {"gauge", "Number of physical CPU cores."},
	"machine_cpu_sockets":                              {"gauge", "Number of CPU sockets."},
	"machine_memory_bytes":                             {"gauge", "Amount of memory installed on the machine."},
	"machine_swap_bytes":                               {"gauge", "Amount of swap memory available on the machine."},
	"machine_scrape_error":                             {"gauge", "1 if there was an error while getting machine metrics, 0 otherwise."},
	"resource_scrape_error":                            {"gauge", "1 if there was an error while getting container metrics, 0 otherwise"},
}

// samples are the figures of the answer, by metric and labels. Of two with the same the
// first counts: monitors refuse an answer with both, which a runtime that lists something
// twice would make of it.
type samples map[string]map[string]string

func (f samples) add(name, labels, value string, milliseconds int64) {
	f.plain(name, labels, value+" "+strconv.FormatInt(milliseconds, 10))
}

// plain adds a figure without a timestamp of its own.
func (f samples) plain(name, labels, value string) {
	if f[name] == nil {
		f[name] = map[string]string{}
	}
	if _, told := f[name][labels]; !told {
		f[name][labels] = value
	}
}

// addStarts adds when containers started, from which metrics-server computes
// their usage.
func (f samples) addStarts(all []*runtimeapi.ContainerStats, status func(types.UID) (core.PodStatus, bool)) {
	for _, one := range all {
		labels := one.GetAttributes().GetLabels()
		known, _ := status(types.UID(labels[kubelettypes.KubernetesPodUIDLabel]))
		name := labels[kubelettypes.KubernetesContainerNameLabel]
		if at := started(&known, name); !at.IsZero() {
			f.plain("container_start_time_seconds", labelled("container", name, "namespace", labels[kubelettypes.KubernetesPodNamespaceLabel],
				"pod", labels[kubelettypes.KubernetesPodNameLabel]), fmt.Sprint(at.Unix()))
		}
	}
}

// addContainers adds the usage of containers, and of their pods: as the sum, or from
// the pods' control groups if they have some.
func (f samples) addContainers(all []*runtimeapi.ContainerStats, groups func(types.UID, string) (cgroup.Usage, bool), now time.Time) {
	pods := map[string]*podSum{}
	for _, one := range all {
		labels := one.GetAttributes().GetLabels()
		uid := labels[kubelettypes.KubernetesPodUIDLabel]
		if uid == "" {
			continue
		}
		namespace, name := labels[kubelettypes.KubernetesPodNamespaceLabel], labels[kubelettypes.KubernetesPodNameLabel]
		pod := labelled("namespace", namespace, "pod", name)
		if pods[pod] == nil {
			pods[pod] = &podSum{}
		}
		pods[pod].uid = types.UID(uid)
		if one.Swap == nil && groups != nil && !ended(one) {
			if usage, known := groups(types.UID(uid), one.GetAttributes().GetId()); known {
				one.Swap = swapOf(usage, now)
			}
		}
		f.addContainer(labelled("container", labels[kubelettypes.KubernetesContainerNameLabel], "namespace", namespace, "pod", name), one,
			pods[pod])
	}
	for of, pod := range pods {
		if groups != nil && pod.cpu.known && pod.memory.known {
			if whole, known := groups(pod.uid, ""); known {
				pod.cpu, pod.memory = total{whole.CPU, now.UnixNano(), true}, total{whole.WorkingSet, now.UnixNano(), true}
			}
		}
		if pod.cpu.known {
			f.add("pod_cpu_usage_seconds_total", of, seconds(pod.cpu.value), pod.cpu.at/1e6)
		}
		if pod.memory.known {
			f.add("pod_memory_working_set_bytes", of, fmt.Sprint(pod.memory.value), pod.memory.at/1e6)
		}
		if pod.swap.known {
			f.add("pod_swap_usage_bytes", of, fmt.Sprint(pod.swap.value), pod.swap.at/1e6)
		}
	}
}

// addContainer adds one container's usage, also to its pod's.
func (f samples) addContainer(of string, stats *runtimeapi.ContainerStats, pod *podSum) {
	if used := stats.GetCpu().GetUsageCoreNanoSeconds(); used != nil {
		at := stats.GetCpu().GetTimestamp()
		f.add("container_cpu_usage_seconds_total", of, seconds(used.GetValue()), at/1e6)
		pod.cpu.add(used.GetValue(), at)
	}
	if used := stats.GetMemory().GetWorkingSetBytes(); used != nil {
		at := stats.GetMemory().GetTimestamp()
		f.add("container_memory_working_set_bytes", of, fmt.Sprint(used.GetValue()), at/1e6)
		pod.memory.add(used.GetValue(), at)
	}
	if used := stats.GetSwap().GetSwapUsageBytes(); used != nil {
		at := stats.GetSwap().GetTimestamp()
		f.add("container_swap_usage_bytes", of, fmt.Sprint(used.GetValue()), at/1e6)
		if free := stats.GetSwap().GetSwapAvailableBytes(); free != nil {
			f.add("container_swap_limit_bytes", of, fmt.Sprint(used.GetValue()+free.GetValue()), at/1e6)
		}
		pod.swap.add(used.GetValue(), at)
	}
}

// podSum is what a pod's containers use together.
type podSum struct {
	uid               types.UID
	cpu, memory, swap total
}

// total is a figure of several containers; known if any of them has it.
type total struct {
	value uint64
	at    int64 // nanoseconds: when the last was measured
	known bool
}

func (t *total) add(value uint64, at int64) {
	t.value, t.at, t.known = t.value+value, max(t.at, at), true
}

func seconds(nanoseconds uint64) string { return fmt.Sprintf("%g", float64(nanoseconds)/1e9) }

func (f samples) answer(c *gin.Context) {
	c.Header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = c.Writer.WriteString(f.String()) // the caller may have gone
}

// String is the answer; metrics without any value are left out.
func (f samples) String() string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(f)) {
		fmt.Fprintf(&text, "# HELP %s %s\n# TYPE %s %s\n", name, kinds[name].help, name, kinds[name].kind)
		for _, labels := range slices.Sorted(maps.Keys(f[name])) {
			fmt.Fprintf(&text, "%s%s %s\n", name, labels, f[name][labels])
		}
	}
	return text.String()
}
