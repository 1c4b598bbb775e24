package cgroup

import (
	"fmt"
	"os"
	"path"
	"strconv"
	"sync"

	"github.com/opencontainers/cgroups"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"kctl/proto/core"
)

// MemoryQoS is what groups have beside a limit of memory, with cgroup v2 (KEP-2570). The zero
// value leaves groups as they are.
type MemoryQoS struct {
	// ThrottlingFactor is the part of what is between its request and its limit that a container may
	// use before the kernel slows it down and takes memory back. Zero: all.
	ThrottlingFactor float64
	// Tiered keeps requested memory from being taken back: that of guaranteed pods ever, that of
	// burstable ones while there is other memory to take.
	Tiered bool
}

// Files of cgroup v2. The kernel protects a group no more than those above it.
const (
	memoryMin  = "memory.min"
	memoryLow  = "memory.low"
	memoryHigh = "memory.high"
	noBound    = "max"
)

// Container are the values for a pod's container. Without a limit of its own it is slowed down by what
// the node has for pods, in bytes, unless the pod as a whole is, by its own limit.
func (q MemoryQoS) Container(pod *core.Pod, c *core.Container, allocatable int64) map[string]string {
	if q == (MemoryQoS{}) {
		return nil
	}
	request, limit := c.Resources.Requests.Memory().Value(), c.Resources.Limits.Memory().Value()
	values := q.protection(QOSClass(pod), request)
	values[memoryHigh] = noBound
	if podLimit := podLevelMemoryLimit(pod); q.ThrottlingFactor > 0 && (limit > 0 || podLimit == 0) {
		if limit == 0 {
			limit = allocatable
		}
		values[memoryHigh] = q.high(request, limit)
	}
	return values
}

// pod are the values for the group of a pod that requests so much.
func (q MemoryQoS) pod(pod *core.Pod, request int64) map[string]string {
	if q == (MemoryQoS{}) {
		return nil
	}
	values := q.protection(QOSClass(pod), request)
	if q.ThrottlingFactor > 0 && resourcehelper.IsPodLevelResourcesSet(pod) {
		_, limit := podLimits(pod)
		values[memoryHigh] = q.high(request, limit)
	}
	return values
}

func (q MemoryQoS) protection(class corev1.PodQOSClass, request int64) map[string]string {
	values := map[string]string{memoryMin: "0", memoryLow: "0"}
	switch {
	case !q.Tiered:
	case class == corev1.PodQOSGuaranteed:
		values[memoryMin] = strconv.FormatInt(request, 10)
	default:
		values[memoryLow] = strconv.FormatInt(request, 10)
	}
	return values
}

// high is where something that requests so much, and is limited to more, is slowed down, in whole pages.
func (q MemoryQoS) high(request, limit int64) string {
	page := int64(os.Getpagesize())
	high := int64(float64(request)+float64(limit-request)*q.ThrottlingFactor) / page * page
	if limit == 0 || high <= request {
		return noBound
	}
	return strconv.FormatInt(high, 10)
}

func podLevelMemoryLimit(pod *core.Pod) int64 {
	if pod.Spec.Resources == nil {
		return 0
	}
	return pod.Spec.Resources.Limits.Memory().Value()
}

// protected is the requested memory of all pods, which the groups above theirs have to protect. A restarted
// kubelet takes it from the groups of the pods that it will see again, or will clean up.
type protected struct {
	mu   sync.Mutex
	pods map[types.UID]protection
	set  protection // of the groups above
}

// protection is memory in bytes: of guaranteed pods, and of burstable ones.
type protection struct{ guaranteed, burstable int64 }

func (p *protected) sum() (sum protection) {
	for _, pod := range p.pods {
		sum.guaranteed += pod.guaranteed
		sum.burstable += pod.burstable
	}
	return sum
}

// startProtecting sets what the groups above the pods protect: what those of the pods do, or nothing, if a
// kubelet before this one protected something.
func (m *Manager) startProtecting() error {
	if !cgroups.IsCgroup2UnifiedMode() {
		return nil
	}
	p := &m.protected
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.MemoryQoS.Tiered {
		before, err := m.protectedBefore()
		if err != nil {
			return err
		}
		p.pods = before
	} else if is, err := m.protects(podsGroup); err != nil || is == (protection{}) {
		return err
	}
	p.set = p.sum()
	return m.protectAbove(p.set)
}

// protect adds what a pod requests to what the groups above it protect; a pod that is gone requests nothing.
func (m *Manager) protect(uid types.UID, class corev1.PodQOSClass, request int64) error {
	if !m.MemoryQoS.Tiered || !cgroups.IsCgroup2UnifiedMode() {
		return nil
	}
	p := &m.protected
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case request == 0:
		delete(p.pods, uid)
	case class == corev1.PodQOSGuaranteed:
		p.pods[uid] = protection{guaranteed: request}
	default:
		p.pods[uid] = protection{burstable: request}
	}
	sum := p.sum()
	if sum == p.set {
		return nil
	}
	if err := m.protectAbove(sum); err != nil {
		return err
	}
	p.set = sum
	return nil
}

// protectAbove gives the groups above the pods what these request. The kernel keeps memory.low
// of a group only as far as the groups above it keep as much.
func (m *Manager) protectAbove(sum protection) error {
	low := strconv.FormatInt(sum.burstable, 10)
	for _, group := range []struct {
		name   string
		values map[string]string
	}{
		{podsGroup, map[string]string{memoryMin: strconv.FormatInt(sum.guaranteed+sum.burstable, 10), memoryLow: low}},
		{path.Join(podsGroup, burstableGroup), map[string]string{memoryLow: low}},
	} {
		if err := m.create(group.name, &cgroups.Resources{Unified: group.values}); err != nil {
			return fmt.Errorf("protecting memory: %w", err)
		}
	}
	return nil
}

func (m *Manager) protectedBefore() (map[types.UID]protection, error) {
	pods, err := m.listed(true)
	if err != nil {
		return nil, err
	}
	before := map[types.UID]protection{}
	for uid, class := range pods {
		one, err := m.protects(groupOf(uid, class))
		if err != nil {
			return nil, err
		}
		if one != (protection{}) {
			before[uid] = one
		}
	}
	return before, nil
}

// protects is what a group has in memory.min and memory.low.
func (m *Manager) protects(group string) (protection, error) {
	g, err := m.group(group, nil)
	if err != nil {
		return protection{}, err
	}
	dir := g.Path("memory")
	return protection{int64(countOf(dir, memoryMin)), int64(countOf(dir, memoryLow))}, nil
}

// ProtectedMemory is what guaranteed and burstable pods request, in bytes, as far as it is protected.
func (m *Manager) ProtectedMemory() (guaranteed, burstable int64) {
	m.protected.mu.Lock()
	defer m.protected.mu.Unlock()
	return m.protected.set.guaranteed, m.protected.set.burstable
}
