package server

import (
	"cmp"
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/filesystem"
	"kctl/kubelet/internal/node"
	"kctl/proto/core"
)

// PodUsage is the part of a pod's usage that the runtime does not measure.
type PodUsage struct {
	At           metav1.Time
	Disk, Inodes uint64 // of volumes, logs and what containers wrote
	Processes    uint64
	Volumes      map[string]VolumeUsage // by name
	Logs         map[string]LogUsage
}

// VolumeUsage is a volume's usage of its file system.
type VolumeUsage struct {
	Dir           string
	Claim         string // of the pod's namespace, by which it has it; "" for its own
	Bytes, Inodes uint64
}

// LogUsage is what a container's logs use of the disk.
type LogUsage struct{ Bytes, Inodes uint64 }

// addStarts adds when pods and containers started.
func (s *Server) addStarts(summary *stats.Summary) {
	for i := range summary.Pods {
		pod := &summary.Pods[i]
		status, _ := s.Status(types.UID(pod.PodRef.UID))
		if status.StartTime != nil {
			pod.StartTime = *status.StartTime
		}
		for at := range pod.Containers {
			pod.Containers[at].StartTime = started(&status, pod.Containers[at].Name)
		}
	}
}

// addGroups takes pods' usage from their control groups, if they have some: these
// include the sandbox, and a limit for the whole pod. All pods together are one of the
// system containers, as the daemons are.
func (s *Server) addGroups(summary *stats.Summary) {
	if s.Stats.Groups == nil {
		return
	}
	now := metav1.NewTime(s.Clock.Now())
	for i := range summary.Pods {
		pod := &summary.Pods[i]
		if usage, known := s.Stats.Groups(types.UID(pod.PodRef.UID), ""); known {
			pod.CPU, pod.Memory = groupStats(now, usage, pod.CPU)
			pod.IO = addPressure(now, usage.Pressure, pod.CPU, pod.Memory)
		}
	}
	system := map[string]cgroup.Usage{}
	if s.Stats.Daemons != nil {
		system = s.Stats.Daemons()
	}
	if usage, known := s.Stats.Groups("", ""); known {
		system[stats.SystemContainerPods] = usage
	}
	for _, name := range slices.Sorted(maps.Keys(system)) {
		one := stats.ContainerStats{Name: name, StartTime: metav1.NewTime(system[name].Started)}
		one.CPU, one.Memory = groupStats(now, system[name], nil)
		one.CPU.UsageNanoCores = s.rates.since(name, now.Time, system[name].CPU)
		one.IO = addPressure(now, system[name].Pressure, one.CPU, one.Memory)
		summary.Node.SystemContainers = append(summary.Node.SystemContainers, one)
	}
}

// groupStats keeps those of the containers' figures that a group does not have.
func groupStats(now metav1.Time, usage cgroup.Usage, cpu *stats.CPUStats) (*stats.CPUStats, *stats.MemoryStats) {
	c, m := stats.CPUStats{Time: now, UsageCoreNanoSeconds: &usage.CPU}, stats.MemoryStats{
		Time: now, UsageBytes: &usage.Memory, WorkingSetBytes: &usage.WorkingSet, RSSBytes: &usage.RSS,
		PageFaults: &usage.PageFaults, MajorPageFaults: &usage.MajorPageFaults,
	}
	if cpu != nil {
		c.UsageNanoCores = cpu.UsageNanoCores
	}
	if usage.Limit > 0 {
		m.AvailableBytes = new(usage.Limit - min(usage.Limit, usage.WorkingSet))
	}
	return &c, &m
}

// addPods adds to the pods of a summary what is not per container: network,
// volumes and processes. What can't be measured is left out.
func (s *Server) addPods(ctx context.Context, summary *stats.Summary, machine node.Usage) {
	networks := map[string]*stats.NetworkStats{}
	for _, one := range s.podNetworks(ctx) {
		networks[one.pod.GetUid()] = one.stats()
	}
	var usages map[types.UID]PodUsage
	if s.Stats.PodUsage != nil {
		usages = s.Stats.PodUsage(ctx)
	}
	for i := range summary.Pods {
		pod := &summary.Pods[i]
		pod.Network = networks[pod.PodRef.UID]
		for at := range pod.Containers {
			pod.Swap = addSwap(pod.Swap, pod.Containers[at].Swap)
		}
		if usage, measured := usages[types.UID(pod.PodRef.UID)]; measured {
			addUsage(pod, usage, machine)
		}
	}
}

// started is when a running container started; zero for others.
func started(status *core.PodStatus, container string) metav1.Time {
	if c := containerStatus(status, container); c != nil && c.State.Running != nil {
		return c.State.Running.StartedAt
	}
	return metav1.Time{}
}

// addUsage adds what a pod uses of the file system of the kubelet's root, which
// is the machine's Disk.
func addUsage(pod *stats.PodStats, usage PodUsage, machine node.Usage) {
	part := func(bytes uint64, inodes *uint64) stats.FsStats {
		return stats.FsStats{
			Time: usage.At, UsedBytes: &bytes, InodesUsed: inodes, CapacityBytes: &machine.DiskCapacity, AvailableBytes: &machine.DiskAvailable,
			Inodes: &machine.Inodes, InodesFree: &machine.InodesFree,
		}
	}
	pod.ProcessStats = &stats.ProcessStats{ProcessCount: &usage.Processes}
	pod.EphemeralStorage = new(part(usage.Disk, &usage.Inodes))
	for i := range pod.Containers {
		if logs, known := usage.Logs[pod.Containers[i].Name]; known {
			pod.Containers[i].Logs = new(part(logs.Bytes, &logs.Inodes))
		}
	}
	for name, v := range usage.Volumes {
		of := stats.FsStats{Time: usage.At, UsedBytes: &v.Bytes, InodesUsed: &v.Inodes}
		addFsSpace(&of, v.Dir) // some are in memory
		one := stats.VolumeStats{Name: name, FsStats: of}
		if v.Claim != "" {
			one.PVCRef = &stats.PVCReference{Namespace: pod.PodRef.Namespace, Name: v.Claim}
		}
		pod.VolumeStats = append(pod.VolumeStats, one)
	}
	slices.SortFunc(pod.VolumeStats, func(a, b stats.VolumeStats) int { return cmp.Compare(a.Name, b.Name) })
}

func addSwap(a, b *stats.SwapStats) *stats.SwapStats {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return &stats.SwapStats{
		Time:               b.Time,
		SwapAvailableBytes: sum(a.SwapAvailableBytes, b.SwapAvailableBytes),
		SwapUsageBytes:     sum(a.SwapUsageBytes, b.SwapUsageBytes),
	}
}

// runtimeStats are about the file systems of images and containers; nil if the
// runtime does not report them.
func (s *Server) runtimeStats(ctx context.Context) *stats.RuntimeStats {
	info, err := s.Runtime.ImageFsInfo(ctx)
	if err != nil {
		return nil
	}
	result := &stats.RuntimeStats{ImageFs: fileSystem(info.GetImageFilesystems())}
	// A runtime that does not distinguish them has both on one file system.
	if result.ContainerFs = fileSystem(info.GetContainerFilesystems()); result.ContainerFs == nil {
		result.ContainerFs = result.ImageFs
	}
	return result
}

func fileSystem(usages []*runtimeapi.FilesystemUsage) *stats.FsStats {
	if len(usages) == 0 {
		return nil
	}
	u := usages[0]
	result := &stats.FsStats{Time: at(u.GetTimestamp()), UsedBytes: value(u.GetUsedBytes()), InodesUsed: value(u.GetInodesUsed())}
	addFsSpace(result, u.GetFsId().GetMountpoint())
	return result
}

// addFsSpace adds how large the file system is that the directory is on, if it is there.
func addFsSpace(s *stats.FsStats, dir string) {
	if disk, err := filesystem.Of(dir); err == nil {
		s.CapacityBytes, s.AvailableBytes, s.Inodes, s.InodesFree = &disk.Capacity, &disk.Available, &disk.Inodes, &disk.InodesFree
	}
}
