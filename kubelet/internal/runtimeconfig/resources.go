package runtimeconfig

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/opencontainers/cgroups"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/fieldpath"
	"kctl/kubelet/internal/podmanager"
	"kctl/proto/core"
)

// OOM score adjustments: what the kernel kills first when memory runs out.
const (
	oomGuaranteed = -997
	oomBestEffort = 1000
)

// Resources are a container's limits in the runtime's terms. Without a
// limit of its own for cpu or memory it has the pod's, so that programs in it see
// how much there is (KEP-2837); without a request for cpu, its share is that of
// its limit, the pod's included.
func (m *Maker) Resources(pod *core.Pod, c *core.Container) *runtimeapi.LinuxContainerResources {
	r := m.linuxResources(c.Resources.Requests, fieldpath.Limits(pod, c.Resources.Limits))
	r.OomScoreAdj = m.oomScore(pod, c)
	if m.unified {
		r.Unified = m.MemoryQoS.Container(pod, c, m.allocatableMemory())
	}
	if m.OOMKillGroup {
		setUnified(r, "memory.oom.group", "1")
	}
	m.limitSwap(r, pod, c)
	return r
}

// setUnified sets a file of the container's group, with cgroup v2.
func setUnified(r *runtimeapi.LinuxContainerResources, file, value string) {
	if r.Unified == nil {
		r.Unified = map[string]string{}
	}
	r.Unified[file] = value
}

// allocatableMemory is what the node has for pods, in bytes; 0 if that is not known.
func (m *Maker) allocatableMemory() int64 {
	if m.Environment == nil || m.Environment.Allocatable == nil {
		return 0
	}
	allocatable := m.Environment.Allocatable()
	return allocatable.Memory().Value()
}

func (m *Maker) linuxResources(requests, limits corev1.ResourceList) *runtimeapi.LinuxContainerResources {
	shares := cgroup.Shares(requests.Cpu().MilliValue())
	if _, asked := requests[corev1.ResourceCPU]; !asked && !limits.Cpu().IsZero() {
		shares = cgroup.Shares(limits.Cpu().MilliValue())
	}
	period := cmp.Or(m.CPUPeriod, cgroup.Period)
	r := &runtimeapi.LinuxContainerResources{
		CpuShares:          int64(shares),
		CpuPeriod:          period,
		CpuQuota:           cgroup.Quota(limits.Cpu().MilliValue(), period),
		MemoryLimitInBytes: limits.Memory().Value(),
	}
	if m.NoCPUQuota {
		r.CpuQuota = 0
	}
	r.HugepageLimits = hugepages(limits)
	return r
}

// hugepages limits every page size that the machine has, so that those that are
// not requested can't be used.
func hugepages(limits corev1.ResourceList) []*runtimeapi.HugepageLimit {
	var out []*runtimeapi.HugepageLimit
	for _, size := range cgroups.HugePageSizes() {
		limit := uint64(0)
		for name, quantity := range limits {
			text, ok := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix)
			if !ok {
				continue
			}
			if asked, err := resource.ParseQuantity(text); err == nil && pageSize(asked.Value()) == size {
				limit = uint64(quantity.Value())
			}
		}
		out = append(out, &runtimeapi.HugepageLimit{PageSize: size, Limit: limit})
	}
	return out
}

// pageSize formats a size as the kernel does: 2MB, 1GB.
func pageSize(bytes int64) string {
	for _, unit := range []struct {
		name string
		size int64
	}{{"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}} {
		if bytes >= unit.size {
			return strconv.FormatInt(bytes/unit.size, 10) + unit.name
		}
	}
	return strconv.FormatInt(bytes, 10) + "B"
}

// oomScore is upstream's: guaranteed and node-critical pods last, best-effort
// ones first, and in between the later, the more of the machine's memory a
// container requested. A sidecar goes no sooner than the containers that it
// serves (KEP-753).
func (m *Maker) oomScore(pod *core.Pod, c *core.Container) int64 {
	if pod.Spec.PriorityClassName == nodeCritical && podmanager.IsCritical(pod) {
		return oomGuaranteed
	}
	switch cgroup.QOSClass(pod) {
	case corev1.PodQOSGuaranteed:
		return oomGuaranteed
	case corev1.PodQOSBestEffort:
		return oomBestEffort
	}
	request := c.Resources.Requests.Memory().Value()
	if core.IsSidecar(c) {
		request = max(request, leastRequest(pod.Spec.Containers))
	}
	score := 1000 - 1000*(request+unclaimed(pod))/m.memory
	return min(max(score, 1000+oomGuaranteed), oomBestEffort-1)
}

// nodeCritical is the priority class of pods that a node can't do without.
const nodeCritical = "system-node-critical"

func leastRequest(containers []core.Container) int64 {
	least := int64(math.MaxInt64)
	for i := range containers {
		least = min(least, containers[i].Resources.Requests.Memory().Value())
	}
	return least
}

// unclaimed is a container's part of the memory that the pod requests as a whole
// and none of its containers does (KEP-2837, "OOM score adjustment").
func unclaimed(pod *core.Pod) int64 {
	if pod.Spec.Resources == nil || pod.Spec.Resources.Requests.Memory().IsZero() {
		return 0
	}
	claimed := resourcehelper.AggregateContainerRequests(pod, resourcehelper.PodResourcesOptions{})
	left := pod.Spec.Resources.Requests.Memory().Value() - claimed.Memory().Value()
	return max(left, 0) / int64(len(pod.Spec.Containers)+len(pod.Spec.InitContainers))
}

func podTotals(pod *core.Pod) (requests, limits corev1.ResourceList) {
	o := resourcehelper.PodResourcesOptions{ExcludeOverhead: true}
	return resourcehelper.PodRequests(pod, o), resourcehelper.PodLimits(pod, o)
}
