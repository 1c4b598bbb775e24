package server

import (
	"fmt"
	"strings"

	"github.com/gin-gonic/gin"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelettypes "k8s.io/kubelet/pkg/types"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/node"
	"kctl/proto/core"
)

// containerMetrics answers /metrics/cadvisor with those of cAdvisor's metrics that
// the container runtime's measurements can provide: the ones that dashboards of
// pods and nodes use. The label id is the container's id, not its control group;
// "/" is the machine.
func (s *Server) containerMetrics(c *gin.Context) {
	all, ok := s.measure(c)
	if !ok {
		return
	}
	f := samples{}
	for _, one := range all {
		s.addContainer(f, one)
	}
	for _, one := range s.podNetworks(c.Request.Context()) {
		one.addTo(f, func(more ...string) string {
			return labelled(append([]string{"container", "", "id", one.id, "image", "", "name", one.id, "namespace", one.pod.GetNamespace(), "pod", one.pod.GetName()}, more...)...)
		})
	}
	failed := 0
	if s.Usage != nil {
		usage, err := s.Usage()
		if err != nil {
			failed = 1
		} else {
			addMachine(f, usage)
		}
	}
	if s.Machine != nil {
		status := s.Machine()
		of := labelled("boot_id", status.NodeInfo.BootID, "machine_id", status.NodeInfo.MachineID, "system_uuid", status.NodeInfo.SystemUUID)
		f.plain("machine_cpu_cores", of, fmt.Sprint(status.Capacity.Cpu().Value()))
		f.plain("machine_memory_bytes", of, fmt.Sprint(status.Capacity.Memory().Value()))
		swap := int64(0)
		if known := status.NodeInfo.Swap; known != nil && known.Capacity != nil {
			swap = *known.Capacity
		}
		f.plain("machine_swap_bytes", of, fmt.Sprint(swap))
	}
	f.plain("container_scrape_error", "", fmt.Sprint(failed))
	f.plain("machine_scrape_error", "", "0") // it is asked for nothing here
	f.answer(c)
}

// labelled writes labels, given as pairs of name and value.
func labelled(pairs ...string) string {
	var text []string
	for i := 0; i < len(pairs); i += 2 {
		text = append(text, pairs[i]+`="`+escapes.Replace(pairs[i+1])+`"`)
	}
	return "{" + strings.Join(text, ",") + "}"
}

// escapes are those of the text format; it has no others, and whoever reads one refuses all of
// the answer.
var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// addContainer adds one container's usage and limits.
func (s *Server) addContainer(f samples, one *runtimeapi.ContainerStats) {
	known := one.GetAttributes().GetLabels()
	uid := known[kubelettypes.KubernetesPodUIDLabel]
	if uid == "" {
		return
	}
	namespace, pod, name := known[kubelettypes.KubernetesPodNamespaceLabel], known[kubelettypes.KubernetesPodNameLabel], known[kubelettypes.KubernetesContainerNameLabel]
	status, _ := s.Status(types.UID(uid))
	id := one.GetAttributes().GetId()
	of := func(more ...string) string {
		return labelled(append([]string{"container", name, "id", id, "image", imageOf(&status, name), "name", id, "namespace", namespace, "pod", pod}, more...)...)
	}
	tell := func(metric, labels string, v *runtimeapi.UInt64Value, nanoseconds int64) {
		if v != nil {
			f.add(metric, labels, fmt.Sprint(v.GetValue()), nanoseconds/1e6)
		}
	}
	cpu, memory, layer := one.GetCpu(), one.GetMemory(), one.GetWritableLayer()
	if used := cpu.GetUsageCoreNanoSeconds(); used != nil {
		f.add("container_cpu_usage_seconds_total", of("cpu", "total"), seconds(used.GetValue()), cpu.GetTimestamp()/1e6)
		f.add("container_last_seen", of(), fmt.Sprint(cpu.GetTimestamp()/1e9), cpu.GetTimestamp()/1e6)
	}
	tell("container_memory_usage_bytes", of(), memory.GetUsageBytes(), memory.GetTimestamp())
	tell("container_memory_working_set_bytes", of(), memory.GetWorkingSetBytes(), memory.GetTimestamp())
	tell("container_memory_rss", of(), memory.GetRssBytes(), memory.GetTimestamp())
	tell("container_memory_failures_total", of("failure_type", "pgfault", "scope", "container"), memory.GetPageFaults(), memory.GetTimestamp())
	tell("container_memory_failures_total", of("failure_type", "pgmajfault", "scope", "container"), memory.GetMajorPageFaults(), memory.GetTimestamp())
	tell("container_memory_swap", of(), one.GetSwap().GetSwapUsageBytes(), one.GetSwap().GetTimestamp())
	tell("container_fs_usage_bytes", of("device", ""), layer.GetUsedBytes(), layer.GetTimestamp())
	if usage, known := s.containerGroup(one); known {
		f.addGroup(usage, s.Clock.Now().UnixMilli(), of)
		if one.GetSwap().GetSwapUsageBytes() == nil {
			f.add("container_memory_swap", of(), fmt.Sprint(usage.Swap), s.Clock.Now().UnixMilli())
		}
	}
	if at := started(&status, name); !at.IsZero() {
		f.plain("container_start_time_seconds", of(), fmt.Sprint(at.Unix()))
	}
	if owner, ok := s.Pods.ByName(namespace, pod); ok && string(owner.UID) == uid {
		addLimits(f, owner, name, of())
	}
}

// addGroup adds what a container's group reports.
func (f samples) addGroup(u cgroup.ContainerUsage, ms int64, of func(more ...string) string) {
	f.add("container_cpu_user_seconds_total", of(), seconds(u.User), ms)
	f.add("container_cpu_system_seconds_total", of(), seconds(u.System), ms)
	if u.Periods > 0 { // it has a limit
		f.add("container_cpu_cfs_periods_total", of(), fmt.Sprint(u.Periods), ms)
		f.add("container_cpu_cfs_throttled_periods_total", of(), fmt.Sprint(u.Throttled), ms)
		f.add("container_cpu_cfs_throttled_seconds_total", of(), seconds(u.ThrottledTime), ms)
	}
	f.add("container_memory_cache", of(), fmt.Sprint(u.Cache), ms)
	f.add("container_memory_mapped_file", of(), fmt.Sprint(u.Mapped), ms)
	f.add("container_memory_max_usage_bytes", of(), fmt.Sprint(u.Peak), ms)
	f.add("container_threads", of(), fmt.Sprint(u.Tasks), ms)
	f.add("container_processes", of(), fmt.Sprint(u.Processes), ms)
	f.add("container_memory_failcnt", of(), fmt.Sprint(u.AtLimit), ms)
	f.add("container_oom_events_total", of(), fmt.Sprint(u.Killed), ms)
	for device, used := range u.IO {
		f.add("container_fs_reads_total", of("device", device), fmt.Sprint(used.Reads), ms)
		f.add("container_fs_reads_bytes_total", of("device", device), fmt.Sprint(used.ReadBytes), ms)
		f.add("container_fs_writes_total", of("device", device), fmt.Sprint(used.Writes), ms)
		f.add("container_fs_writes_bytes_total", of("device", device), fmt.Sprint(used.WriteBytes), ms)
	}
	f.addPressure(u.Pressure, ms, of)
}

// addLimits adds what the container may use, as its spec has it.
func addLimits(f samples, pod *core.Pod, name, of string) {
	for _, list := range [][]core.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for _, c := range list {
			if c.Name != name {
				continue
			}
			f.plain("container_spec_cpu_shares", of, fmt.Sprint(cgroup.Shares(c.Resources.Requests.Cpu().MilliValue())))
			if memory := c.Resources.Limits.Memory(); !memory.IsZero() {
				f.plain("container_spec_memory_limit_bytes", of, fmt.Sprint(memory.Value()))
			}
			if cpu := c.Resources.Limits.Cpu(); !cpu.IsZero() {
				f.plain("container_spec_cpu_quota", of, fmt.Sprint(cpu.MilliValue()*100))
				f.plain("container_spec_cpu_period", of, "100000")
			}
		}
	}
}

// imageOf is the image of a container as its status has it.
func imageOf(status *core.PodStatus, name string) string {
	for _, list := range [][]corev1.ContainerStatus{status.ContainerStatuses, status.InitContainerStatuses, status.EphemeralContainerStatuses} {
		for _, c := range list {
			if c.Name == name {
				return c.Image
			}
		}
	}
	return ""
}

// addMachine adds the usage of the whole machine.
func addMachine(f samples, u node.Usage) {
	ms := u.At.UnixMilli()
	of := func(more ...string) string {
		return labelled(append([]string{"container", "", "id", "/", "image", "", "name", "", "namespace", "", "pod", ""}, more...)...)
	}
	f.add("container_cpu_usage_seconds_total", of("cpu", "total"), seconds(u.CPU), ms)
	f.add("container_memory_usage_bytes", of(), fmt.Sprint(u.Memory), ms)
	f.add("container_memory_working_set_bytes", of(), fmt.Sprint(u.WorkingSet), ms)
	f.add("container_memory_rss", of(), fmt.Sprint(u.RSS), ms)
	disk := of("device", u.Disk)
	f.add("container_fs_usage_bytes", disk, fmt.Sprint(u.DiskUsed), ms)
	f.add("container_fs_limit_bytes", disk, fmt.Sprint(u.DiskCapacity), ms)
	f.add("container_fs_inodes_free", disk, fmt.Sprint(u.InodesFree), ms)
	f.add("container_fs_inodes_total", disk, fmt.Sprint(u.Inodes), ms)
	f.addPressure(u.Pressure, ms, of)
	network{at: u.At, interfaces: trafficOf(u.Interfaces)}.addTo(f, of)
}
