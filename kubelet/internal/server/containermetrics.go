package server

import (
	"context"
	"fmt"
	"strings"

	"github.com/gin-gonic/gin"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelettypes "k8s.io/kubelet/pkg/types"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/fieldpath"
	"kctl/kubelet/internal/node"
	"kctl/proto/core"
)

// containerMetrics answers /metrics/cadvisor with those of cAdvisor's metrics that control
// groups and the container runtime can provide, and with its labels: a row for each container
// and sandbox, for each pod, for the groups above them, for the daemons and for the machine,
// whose id is "/".
func (s *Server) containerMetrics(c *gin.Context) {
	all, ok := s.measure(c)
	if !ok {
		return
	}
	f, pods := samples{}, map[types.UID]row{}
	for _, one := range all {
		s.addContainer(f, one, pods)
	}
	s.addSandboxes(c.Request.Context(), f, pods)
	for uid, pod := range pods {
		if details, known := s.group(uid, ""); known {
			f.addDetails(details, s.Clock.Now(), pod.in(details.Usage.Path))
		}
	}
	s.addGroupsAbove(f)
	failed := 0
	if s.Stats.Usage != nil {
		usage, err := s.Stats.Usage()
		if err != nil {
			failed = 1
		} else {
			addMachine(f, usage)
		}
	}
	if s.Stats.Machine != nil {
		addMachineInfo(f, s.Stats.Machine())
	}
	f.plain("container_scrape_error", "", fmt.Sprint(failed))
	f.plain("machine_scrape_error", "", "0") // it is asked for nothing here
	f.answer(c)
}

// row has the labels that all of one container's metrics have; those that don't apply are empty.
type row struct{ container, id, image, name, namespace, pod string }

// in is the row of the group that is there.
func (r row) in(path string) row {
	if path != "" {
		r.id = path
	}
	return r
}

// of writes the labels, with more of them, given as pairs of name and value.
func (r row) of(more ...string) string {
	return labelled(append([]string{"container", r.container, "id", r.id, "image", r.image, "name", r.name, "namespace", r.namespace, "pod",
		r.pod}, more...)...)
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

// addContainer adds one container's usage and limits, and the pod that it is of to pods.
func (s *Server) addContainer(f samples, one *runtimeapi.ContainerStats, pods map[types.UID]row) {
	labels := one.GetAttributes().GetLabels()
	uid := types.UID(labels[kubelettypes.KubernetesPodUIDLabel])
	if uid == "" {
		return
	}
	pod := row{namespace: labels[kubelettypes.KubernetesPodNamespaceLabel], pod: labels[kubelettypes.KubernetesPodNameLabel]}
	pods[uid] = pod
	status, _ := s.Status(uid)
	r, id := pod, one.GetAttributes().GetId()
	r.container, r.id, r.name = labels[kubelettypes.KubernetesContainerNameLabel], id, id
	if known := containerStatus(&status, r.container); known != nil {
		r.image = known.Image
	}
	at := started(&status, r.container)
	if details, known := s.containerGroup(one); known {
		r = r.in(details.Usage.Path)
		f.addStart(at.Time, r.of()) // before that of the group, which the runtime makes earlier
		f.addDetails(details, s.Clock.Now(), r)
	} else {
		f.addStart(at.Time, r.of())
		f.addMeasured(one, r)
		if owner, ok := s.Pods.ByName(r.namespace, r.pod); ok && owner.UID == uid && !ended(one) {
			addLimits(f, owner, r.container, r.of(), s.Stats.CPUPeriod)
		}
	}
	if layer := one.GetWritableLayer(); layer != nil {
		f.tell("container_fs_usage_bytes", r.of("device", ""), layer.GetUsedBytes(), layer.GetTimestamp())
	}
}

// addSandboxes adds what sandboxes use, whose network is that of their pods.
func (s *Server) addSandboxes(ctx context.Context, f samples, pods map[types.UID]row) {
	networks := s.podNetworks(ctx)
	s.images.keep(s.Sandboxes(), networks)
	for _, one := range networks {
		uid := types.UID(one.pod.GetUid())
		pod := row{namespace: one.pod.GetNamespace(), pod: one.pod.GetName()}
		pods[uid] = pod
		r := pod
		r.id, r.name, r.image = one.id, one.id, s.images.of(ctx, s.Runtime, one.id)
		if details, known := s.group(uid, one.id); known {
			r = r.in(details.Usage.Path)
			f.addDetails(details, s.Clock.Now(), r)
		}
		one.addTo(f, r.of)
	}
}

// addGroupsAbove adds the groups that pods are in, and those of the daemons.
func (s *Server) addGroupsAbove(f samples) {
	if s.Stats.ClassGroups != nil {
		for _, details := range s.Stats.ClassGroups() {
			f.addDetails(details, s.Clock.Now(), row{id: details.Usage.Path})
		}
	}
	if s.Stats.Daemons != nil {
		for _, usage := range s.Stats.Daemons() {
			f.addUsage(usage, s.Clock.Now(), row{id: usage.Path})
		}
	}
}

// addMeasured adds what the runtime measures.
func (f samples) addMeasured(one *runtimeapi.ContainerStats, r row) {
	cpu, memory := one.GetCpu(), one.GetMemory()
	if used := cpu.GetUsageCoreNanoSeconds(); used != nil {
		f.add("container_cpu_usage_seconds_total", r.of("cpu", "total"), seconds(used.GetValue()), cpu.GetTimestamp()/1e6)
		f.add("container_last_seen", r.of(), fmt.Sprint(cpu.GetTimestamp()/1e9), cpu.GetTimestamp()/1e6)
	}
	f.tell("container_memory_usage_bytes", r.of(), memory.GetUsageBytes(), memory.GetTimestamp())
	f.tell("container_memory_working_set_bytes", r.of(), memory.GetWorkingSetBytes(), memory.GetTimestamp())
	f.tell("container_memory_rss", r.of(), memory.GetRssBytes(), memory.GetTimestamp())
	f.tell("container_memory_swap", r.of(), one.GetSwap().GetSwapUsageBytes(), one.GetSwap().GetTimestamp())
	for _, scope := range []string{"container", "hierarchy"} {
		f.tell("container_memory_failures_total", r.of("failure_type", "pgfault", "scope", scope), memory.GetPageFaults(), memory.GetTimestamp())
		f.tell("container_memory_failures_total", r.of("failure_type", "pgmajfault", "scope", scope), memory.GetMajorPageFaults(),
			memory.GetTimestamp())
	}
}

// tell adds a figure that may not have been measured.
func (f samples) tell(metric, labels string, v *runtimeapi.UInt64Value, nanoseconds int64) {
	if v != nil {
		f.add(metric, labels, fmt.Sprint(v.GetValue()), nanoseconds/1e6)
	}
}

// addLimits adds what the container may use, as its spec has it and the runtime was told: without
// a limit of its own it has the pod's (KEP-2837). Limits of cpu are kept over period, or not at all
// if that is zero.
func addLimits(f samples, pod *core.Pod, name, of string, period int64) {
	for c := range core.Containers(&pod.Spec) {
		if c.Name != name {
			continue
		}
		limits, request := fieldpath.Limits(pod, c.Resources.Limits), c.Resources.Requests.Cpu()
		if _, asked := c.Resources.Requests[corev1.ResourceCPU]; !asked {
			request = limits.Cpu()
		}
		f.plain("container_spec_cpu_shares", of, fmt.Sprint(cgroup.Shares(request.MilliValue())))
		if memory := limits.Memory(); !memory.IsZero() {
			f.plain("container_spec_memory_limit_bytes", of, fmt.Sprint(memory.Value()))
		}
		if quota := cgroup.Quota(limits.Cpu().MilliValue(), period); quota > 0 && period > 0 {
			f.plain("container_spec_cpu_quota", of, fmt.Sprint(quota))
			f.plain("container_spec_cpu_period", of, fmt.Sprint(period))
		}
	}
}

// addMachine adds the usage of the whole machine.
func addMachine(f samples, u node.Usage) {
	r := row{id: "/"}
	f.addUsage(cgroup.Usage{
		CPU: u.CPU, Memory: u.Memory, WorkingSet: u.WorkingSet, RSS: u.RSS,
		PageFaults: u.PageFaults, MajorPageFaults: u.MajorPageFaults, Pressure: u.Pressure, Started: u.Booted,
	}, u.At, r)
	ms, disk := u.At.UnixMilli(), r.of("device", u.Disk)
	f.add("container_fs_usage_bytes", disk, fmt.Sprint(u.DiskUsed), ms)
	f.add("container_fs_limit_bytes", disk, fmt.Sprint(u.DiskCapacity), ms)
	f.add("container_fs_inodes_free", disk, fmt.Sprint(u.InodesFree), ms)
	f.add("container_fs_inodes_total", disk, fmt.Sprint(u.Inodes), ms)
	if u.DiskIO != nil {
		f.addDisk(*u.DiskIO, ms, disk)
	}
	f.add("container_processes", r.of(), fmt.Sprint(u.Processes), ms)
	network{at: u.At, interfaces: trafficOf(u.Interfaces)}.addTo(f, r.of)
}

// addMachineInfo adds what the machine is.
func addMachineInfo(f samples, status corev1.NodeStatus) {
	of := labelled("boot_id", status.NodeInfo.BootID, "machine_id", status.NodeInfo.MachineID, "system_uuid", status.NodeInfo.SystemUUID)
	f.plain("machine_cpu_cores", of, fmt.Sprint(status.Capacity.Cpu().Value()))
	cores, sockets := node.Processors()
	f.plain("machine_cpu_physical_cores", of, fmt.Sprint(cores))
	f.plain("machine_cpu_sockets", of, fmt.Sprint(sockets))
	f.plain("machine_memory_bytes", of, fmt.Sprint(status.Capacity.Memory().Value()))
	swap := int64(0)
	if known := status.NodeInfo.Swap; known != nil && known.Capacity != nil {
		swap = *known.Capacity
	}
	f.plain("machine_swap_bytes", of, fmt.Sprint(swap))
}
