package server

import (
	"cmp"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	kubelettypes "k8s.io/kubelet/pkg/types"

	"kctl/kubelet/internal/node"
)

// summary answers with what the pods' containers use, as the runtime measures
// it.
func (s *Server) summary(c *gin.Context) {
	all, err := s.Runtime.ListContainerStats(c.Request.Context(), nil)
	if err != nil {
		s.refuse(c, http.StatusInternalServerError, err)
		return
	}
	summary := summaryOf(s.NodeName, all)
	s.addPods(c.Request.Context(), summary)
	summary.Node.Runtime = s.runtimeStats(c.Request.Context())
	if s.Usage != nil {
		usage, err := s.Usage()
		if err != nil {
			s.refuse(c, http.StatusInternalServerError, err)
			return
		}
		addNode(&summary.Node, usage)
	}
	s.answer(c, summary)
}

// addNode adds what the machine uses.
func addNode(n *stats.NodeStats, u node.Usage) {
	now := metav1.NewTime(u.At)
	used, inodes := u.DiskCapacity-min(u.DiskCapacity, u.DiskAvailable), u.Inodes-min(u.Inodes, u.InodesFree)
	n.CPU = &stats.CPUStats{Time: now, UsageCoreNanoSeconds: &u.CPU}
	n.Memory = &stats.MemoryStats{Time: now, UsageBytes: &u.Memory, WorkingSetBytes: &u.WorkingSet, AvailableBytes: &u.Available}
	n.Fs = &stats.FsStats{
		Time: now, CapacityBytes: &u.DiskCapacity, AvailableBytes: &u.DiskAvailable, UsedBytes: &used,
		Inodes: &u.Inodes, InodesFree: &u.InodesFree, InodesUsed: &inodes,
	}
	most, processes, swapped := int64(u.MaxProcesses), int64(u.Processes), u.Swap-min(u.Swap, u.SwapFree)
	n.StartTime = metav1.NewTime(u.Booted)
	n.Rlimit = &stats.RlimitStats{Time: now, MaxPID: &most, NumOfRunningProcesses: &processes}
	n.Swap = &stats.SwapStats{Time: now, SwapAvailableBytes: &u.SwapFree, SwapUsageBytes: &swapped}
	n.Network = nodeNetwork(now, u.Interfaces)
}

func summaryOf(node string, all []*runtimeapi.ContainerStats) *stats.Summary {
	summary := &stats.Summary{Node: stats.NodeStats{NodeName: node}, Pods: []stats.PodStats{}}
	index := map[string]int{}
	for _, one := range all {
		labels := one.GetAttributes().GetLabels()
		uid := labels[kubelettypes.KubernetesPodUIDLabel]
		if uid == "" {
			continue // not of a pod of ours
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
		pod.Containers = append(pod.Containers, container)
		pod.CPU = addCPU(pod.CPU, container.CPU)
		pod.Memory = addMemory(pod.Memory, container.Memory)
	}
	return summary
}

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
		result.Swap = &stats.SwapStats{
			Time: at(swap.GetTimestamp()), SwapAvailableBytes: value(swap.GetSwapAvailableBytes()), SwapUsageBytes: value(swap.GetSwapUsageBytes()),
		}
	}
	if layer := one.GetWritableLayer(); layer != nil {
		result.Rootfs = &stats.FsStats{
			Time:       at(layer.GetTimestamp()),
			UsedBytes:  value(layer.GetUsedBytes()),
			InodesUsed: value(layer.GetInodesUsed()),
		}
	}
	return result
}

func at(nanoseconds int64) metav1.Time { return metav1.NewTime(time.Unix(0, nanoseconds)) }

// value is nil for what the runtime did not measure.
func value(v *runtimeapi.UInt64Value) *uint64 {
	if v == nil {
		return nil
	}
	number := v.GetValue()
	return &number
}

// sum leaves out what was not measured.
func sum(a, b *uint64) *uint64 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	total := *a + *b
	return &total
}

func addCPU(a, b *stats.CPUStats) *stats.CPUStats {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return &stats.CPUStats{
		Time: b.Time, UsageNanoCores: sum(a.UsageNanoCores, b.UsageNanoCores),
		UsageCoreNanoSeconds: sum(a.UsageCoreNanoSeconds, b.UsageCoreNanoSeconds),
	}
}

func addMemory(a, b *stats.MemoryStats) *stats.MemoryStats {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return &stats.MemoryStats{
		Time: b.Time, UsageBytes: sum(a.UsageBytes, b.UsageBytes), WorkingSetBytes: sum(a.WorkingSetBytes, b.WorkingSetBytes),
		RSSBytes: sum(a.RSSBytes, b.RSSBytes), PageFaults: sum(a.PageFaults, b.PageFaults), MajorPageFaults: sum(a.MajorPageFaults, b.MajorPageFaults),
	}
}
