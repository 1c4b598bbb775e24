package server

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	kubelettypes "k8s.io/kubelet/pkg/types"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/node"
)

// Stats are what the node measures for the summary and the metrics. Each function may be nil:
// what it measures is then not shown.
type Stats struct {
	// CPUPeriod is the time, in microseconds, over which limits of cpu are kept; zero if they are not.
	CPUPeriod int64
	// Usage is what the machine uses.
	Usage func() (node.Usage, error)
	// PodUsage is the last measurement of pods' disk usage and numbers of
	// processes.
	PodUsage func(ctx context.Context) map[types.UID]PodUsage
	// Groups is the usage of a control group: of a pod's container by its id, without an id of
	// the pod, and without a uid of all pods; false if there is none.
	Groups func(pod types.UID, id string) (cgroup.Usage, bool)
	// Daemons is the usage of the groups of the kubelet and of the container runtime,
	// by their names in the summary.
	Daemons func() map[string]cgroup.Usage
	// GroupDetails is what the group of a pod's container reports, by the id of the
	// container or of the sandbox; of the pod itself without an id. It is false if there is none.
	GroupDetails func(pod types.UID, id string) (cgroup.Details, bool)
	// ClassGroups is what the groups above the pods' report.
	ClassGroups func() []cgroup.Details
	// Interfaces is the traffic of a pod's interfaces, by its sandbox's id; nil if the
	// kernel does not report it.
	Interfaces func(pod types.UID, sandbox string) []node.Interface
	// Machine is the node's status, which has what the machine is called and how large it
	// is.
	Machine func() corev1.NodeStatus
}

// RuntimeStats are what the runtime measures.
type RuntimeStats interface {
	ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error)
	ListPodSandboxStats(ctx context.Context, filter *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error)
	ImageFsInfo(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error)
	SandboxImage(ctx context.Context, id string) (string, error)
}

// summary answers with the usage of the pods' containers, as the runtime
// measures it.
func (s *Server) summary(c *gin.Context) {
	all, ok := s.measure(c)
	if !ok {
		return
	}
	summary := summaryOf(s.NodeName, all, s.Stats.Groups)
	s.addStarts(summary)
	s.addGroups(summary)
	var usage node.Usage
	if s.Stats.Usage != nil {
		var err error
		if usage, err = s.Stats.Usage(); err != nil {
			s.refuse(c, http.StatusInternalServerError, err)
			return
		}
		addNode(&summary.Node, usage)
		summary.Node.CPU.UsageNanoCores = s.rates.since("", usage.At, usage.CPU)
	}
	if isTrue(c.Query("only_cpu_and_memory")) {
		s.answer(c, cpuAndMemory(summary))
		return
	}
	s.addPods(c.Request.Context(), summary, usage)
	summary.Node.Runtime = s.runtimeStats(c.Request.Context())
	s.answer(c, summary)
}

// cpuAndMemory leaves out everything else, for clients that ask often and need
// only these.
func cpuAndMemory(all *stats.Summary) *stats.Summary {
	little := &stats.Summary{Node: stats.NodeStats{
		NodeName:         all.Node.NodeName,
		StartTime:        all.Node.StartTime,
		CPU:              all.Node.CPU,
		Memory:           all.Node.Memory,
		IO:               all.Node.IO,
		SystemContainers: all.Node.SystemContainers,
	}}
	little.Pods = make([]stats.PodStats, len(all.Pods))
	for i, pod := range all.Pods {
		little.Pods[i] = stats.PodStats{PodRef: pod.PodRef, StartTime: pod.StartTime, CPU: pod.CPU, Memory: pod.Memory, IO: pod.IO}
		for _, c := range pod.Containers {
			little.Pods[i].Containers = append(little.Pods[i].Containers,
				stats.ContainerStats{Name: c.Name, StartTime: c.StartTime, CPU: c.CPU, Memory: c.Memory, IO: c.IO})
		}
	}
	return little
}

// newest leaves out containers that have been replaced by newer ones, which some
// runtimes still report.
func newest(all []*runtimeapi.ContainerStats) []*runtimeapi.ContainerStats {
	type container struct{ pod, name string }
	of := func(one *runtimeapi.ContainerStats) container {
		labels := one.GetAttributes().GetLabels()
		return container{labels[kubelettypes.KubernetesPodUIDLabel], labels[kubelettypes.KubernetesContainerNameLabel]}
	}
	last := map[container]*runtimeapi.ContainerStats{}
	for _, one := range all {
		before := last[of(one)]
		if before == nil || before.GetAttributes().GetMetadata().GetAttempt() < one.GetAttributes().GetMetadata().GetAttempt() {
			last[of(one)] = one
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(one *runtimeapi.ContainerStats) bool { return last[of(one)] != one })
}

// rates compute the CPU usage between two requests, for each container.
type rates struct {
	mu   sync.Mutex
	last map[string]reading
}

type reading struct {
	at   time.Time
	cpu  uint64
	told *uint64
}

// since is nil the first time; requests within a second get the same answer.
func (r *rates) since(whose string, at time.Time, cpu uint64) *uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[string]reading{}
	}
	last, known := r.last[whose]
	passed := at.Sub(last.at)
	if known && passed < time.Second {
		return last.told
	}
	if known && cpu >= last.cpu {
		last.told = new(uint64(float64(cpu-last.cpu) / passed.Seconds())) // cores
	}
	r.last[whose] = reading{at, cpu, last.told}
	return last.told
}

// keep forgets all others than these containers.
func (r *rates) keep(all []*runtimeapi.ContainerStats) {
	there := map[string]bool{}
	for _, one := range all {
		there[one.GetAttributes().GetId()] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.last, func(id string, _ reading) bool { return !there[id] })
}

// addNode adds what the machine uses.
func addNode(n *stats.NodeStats, u node.Usage) {
	now := metav1.NewTime(u.At)
	inodes := u.Inodes - min(u.Inodes, u.InodesFree)
	n.CPU = &stats.CPUStats{Time: now, UsageCoreNanoSeconds: &u.CPU}
	n.Memory = &stats.MemoryStats{
		Time: now, UsageBytes: &u.Memory, WorkingSetBytes: &u.WorkingSet, AvailableBytes: &u.Available,
		RSSBytes: &u.RSS, PageFaults: &u.PageFaults, MajorPageFaults: &u.MajorPageFaults,
	}
	n.Fs = &stats.FsStats{
		Time: now, CapacityBytes: &u.DiskCapacity, AvailableBytes: &u.DiskAvailable, UsedBytes: &u.DiskUsed,
		Inodes: &u.Inodes, InodesFree: &u.InodesFree, InodesUsed: &inodes,
	}
	most, processes, swapped := int64(u.MaxProcesses), int64(u.Processes), u.Swap-min(u.Swap, u.SwapFree)
	n.StartTime = metav1.NewTime(u.Booted)
	n.Rlimit = &stats.RlimitStats{Time: now, MaxPID: &most, NumOfRunningProcesses: &processes}
	n.Swap = &stats.SwapStats{Time: now, SwapAvailableBytes: &u.SwapFree, SwapUsageBytes: &swapped}
	n.IO = addPressure(now, u.Pressure, n.CPU, n.Memory)
	n.Network = network{at: u.At, interfaces: trafficOf(u.Interfaces)}.stats()
}

// containerGroup is what the group of a measured container reports, if it has one.
func (s *Server) containerGroup(of *runtimeapi.ContainerStats) (cgroup.Details, bool) {
	if ended(of) {
		return cgroup.Details{}, false
	}
	return s.group(types.UID(of.GetAttributes().GetLabels()[kubelettypes.KubernetesPodUIDLabel]), of.GetAttributes().GetId())
}

// group is what the group of a pod's container or sandbox reports, or without an id that of the
// pod.
func (s *Server) group(pod types.UID, id string) (cgroup.Details, bool) {
	if s.Stats.GroupDetails == nil {
		return cgroup.Details{}, false
	}
	return s.Stats.GroupDetails(pod, id)
}

func summaryOf(node string, all []*runtimeapi.ContainerStats, groups func(types.UID, string) (cgroup.Usage, bool)) *stats.Summary {
	summary := &stats.Summary{Node: stats.NodeStats{NodeName: node}, Pods: []stats.PodStats{}}
	index := map[string]int{}
	for _, one := range all {
		labels := one.GetAttributes().GetLabels()
		uid := labels[kubelettypes.KubernetesPodUIDLabel]
		if uid == "" || ended(one) {
			continue // not of a pod of ours, or nothing is used any more
		}
		i, known := index[uid]
		if !known {
			i = len(summary.Pods)
			index[uid] = i
			summary.Pods = append(summary.Pods, stats.PodStats{PodRef: stats.PodReference{
				Name: labels[kubelettypes.KubernetesPodNameLabel], Namespace: labels[kubelettypes.KubernetesPodNamespaceLabel], UID: uid,
			}})
		}
		pod := &summary.Pods[i]
		container := containerStats(one)
		if groups != nil {
			if usage, known := groups(types.UID(uid), one.GetAttributes().GetId()); known {
				addContainerGroup(&container, usage)
			}
		}
		pod.Containers = append(pod.Containers, container)
		pod.CPU = addCPU(pod.CPU, container.CPU)
		pod.Memory = addMemory(pod.Memory, container.Memory)
	}
	return summary
}

// ended says that a container does not run: for such ones the runtime measures only
// the disk usage.
func ended(one *runtimeapi.ContainerStats) bool { return one.GetCpu() == nil && one.GetMemory() == nil }

func containerStats(one *runtimeapi.ContainerStats) stats.ContainerStats {
	result := stats.ContainerStats{Name: one.GetAttributes().GetLabels()[kubelettypes.KubernetesContainerNameLabel]}
	if cpu := one.GetCpu(); cpu != nil {
		result.CPU = &stats.CPUStats{
			Time:                 at(cpu.GetTimestamp()),
			UsageNanoCores:       value(cpu.GetUsageNanoCores()),
			UsageCoreNanoSeconds: value(cpu.GetUsageCoreNanoSeconds()),
		}
	}
	if memory := one.GetMemory(); memory != nil {
		result.Memory = &stats.MemoryStats{
			Time:            at(memory.GetTimestamp()),
			AvailableBytes:  value(memory.GetAvailableBytes()),
			UsageBytes:      value(memory.GetUsageBytes()),
			WorkingSetBytes: value(memory.GetWorkingSetBytes()),
			RSSBytes:        value(memory.GetRssBytes()),
			PageFaults:      value(memory.GetPageFaults()),
			MajorPageFaults: value(memory.GetMajorPageFaults()),
		}
	}
	if swap := one.GetSwap(); swap != nil {
		result.Swap = swapStats(swap)
	}
	if layer := one.GetWritableLayer(); layer != nil {
		result.Rootfs = fileSystem([]*runtimeapi.FilesystemUsage{layer})
	}
	return result
}

// addContainerGroup adds what runtimes need not report.
func addContainerGroup(c *stats.ContainerStats, u cgroup.Usage) {
	now := metav1.Time{}
	if c.Memory != nil {
		now = c.Memory.Time
	}
	c.IO = addPressure(now, u.Pressure, c.CPU, c.Memory)
	if c.Swap == nil {
		c.Swap = swapStats(swapOf(u, now.Time))
	}
}

func swapStats(u *runtimeapi.SwapUsage) *stats.SwapStats {
	return &stats.SwapStats{
		Time:               at(u.GetTimestamp()),
		SwapAvailableBytes: value(u.GetSwapAvailableBytes()),
		SwapUsageBytes:     value(u.GetSwapUsageBytes()),
	}
}

func at(nanoseconds int64) metav1.Time { return metav1.NewTime(time.Unix(0, nanoseconds)) }

// value is nil for what the runtime did not measure.
func value(v *runtimeapi.UInt64Value) *uint64 {
	if v == nil {
		return nil
	}
	return new(v.GetValue())
}

// sum leaves out what was not measured.
func sum(a, b *uint64) *uint64 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return new(*a + *b)
}

// both is nil if one of them is: if one has no limit, the whole has none.
func both(a, b *uint64) *uint64 {
	if a == nil || b == nil {
		return nil
	}
	return sum(a, b)
}

func addCPU(a, b *stats.CPUStats) *stats.CPUStats {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return &stats.CPUStats{
		Time:                 b.Time,
		UsageNanoCores:       sum(a.UsageNanoCores, b.UsageNanoCores),
		UsageCoreNanoSeconds: sum(a.UsageCoreNanoSeconds, b.UsageCoreNanoSeconds),
	}
}

func addMemory(a, b *stats.MemoryStats) *stats.MemoryStats {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return &stats.MemoryStats{
		Time: b.Time, UsageBytes: sum(a.UsageBytes, b.UsageBytes), WorkingSetBytes: sum(a.WorkingSetBytes, b.WorkingSetBytes),
		AvailableBytes: both(a.AvailableBytes, b.AvailableBytes), RSSBytes: sum(a.RSSBytes, b.RSSBytes),
		PageFaults: sum(a.PageFaults, b.PageFaults), MajorPageFaults: sum(a.MajorPageFaults, b.MajorPageFaults),
	}
}
