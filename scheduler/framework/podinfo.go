package framework

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"

	"kctl/proto/core"
	"kctl/proto/relay"
)

// PodInfo is a pod with what the scheduler computes from it once and reads many
// times. It is immutable; a changed pod gets a new PodInfo.
type PodInfo struct {
	Pod *core.Pod
	// Priority is the pod's; zero where it has none.
	Priority int32
	// Requests is what filters count; ScoredRequests counts containers that
	// ask for no CPU or memory with a default.
	Requests       Resource
	ScoredRequests Resource
	// alone is ScoredAlone where that differs.
	alone *Resource
	// HostPorts are the ports of the node that the pod wants.
	HostPorts []HostPort
	// Affinity is what the pod says about other pods; nil if nothing.
	Affinity *PodAffinity
}

// HostPort is a port of a node's address.
type HostPort struct {
	IP       string // 0.0.0.0 stands for every address
	Protocol corev1.Protocol
	Port     int32
}

var defaultRequests = corev1.ResourceList{
	corev1.ResourceCPU:    *apiresource.NewMilliQuantity(DefaultMilliCPURequest, apiresource.DecimalSI),
	corev1.ResourceMemory: *apiresource.NewQuantity(DefaultMemoryRequest, apiresource.BinarySI),
}

// NewPodInfo computes what is known from the pod alone.
func NewPodInfo(pod *core.Pod) *PodInfo {
	info := &PodInfo{
		Pod:       pod,
		Priority:  Priority(pod),
		HostPorts: HostPorts(pod),
		Affinity:  NewPodAffinity(pod),
	}
	if asksAsItsContainer(pod) {
		info.sumContainer()
	} else {
		info.sum()
	}
	return info
}

// asksAsItsContainer reports whether only the pod's single container determines
// what it asks for, as with most pods.
func asksAsItsContainer(pod *core.Pod) bool {
	spec, status := &pod.Spec, &pod.Status
	return len(spec.Containers) == 1 && len(spec.InitContainers) == 0 && spec.Overhead == nil && spec.Resources == nil &&
		len(status.ContainerStatuses) == 0 && status.Resources == nil && status.AllocatedResources == nil &&
		len(status.NodeAllocatableResourceClaimStatuses) == 0
}

// sumContainer is sum for a pod that asksAsItsContainer.
func (p *PodInfo) sumContainer() {
	requests := p.Pod.Spec.Containers[0].Resources.Requests
	p.Requests = NewResource(requests)
	p.ScoredRequests = p.Requests
	if _, asked := requests[corev1.ResourceCPU]; !asked {
		p.ScoredRequests.MilliCPU = DefaultMilliCPURequest
	}
	if _, asked := requests[corev1.ResourceMemory]; !asked {
		p.ScoredRequests.Memory = DefaultMemoryRequest
	}
}

// sum adds up what the pod asks for, by upstream's rules.
func (p *PodInfo) sum() {
	options := resource.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	}
	requests := resource.PodRequests(p.Pod, options)
	p.Requests = NewResource(requests)
	options.NonMissingContainerRequests = scoredDefaults(p.Pod, requests)
	p.ScoredRequests = NewResource(resource.PodRequests(p.Pod, options))
	if resource.IsPodLevelRequestsSet(p.Pod) {
		options.SkipPodLevelResources, options.NonMissingContainerRequests = true, defaultRequests
		alone := NewResource(resource.PodRequests(p.Pod, options))
		p.alone = &alone
	}
}

// ScoredAlone is what NodeResourcesFit scores this pod by when it is to be
// placed: as upstream, its containers' requests without those of the pod as a
// whole. Once on a node, it counts with ScoredRequests.
func (p *PodInfo) ScoredAlone() *Resource {
	if p.alone != nil {
		return p.alone
	}
	return &p.ScoredRequests
}

// scoredDefaults returns the scored requests of containers without requests. A
// pod with pod-level requests has them only for resources that are not among
// its requests. As in upstream, these include its overhead.
func scoredDefaults(pod *core.Pod, requests corev1.ResourceList) corev1.ResourceList {
	if !resource.IsPodLevelRequestsSet(pod) {
		return defaultRequests
	}
	defaults := corev1.ResourceList{}
	for name, quantity := range defaultRequests {
		if _, asked := requests[name]; !asked {
			defaults[name] = quantity
		}
	}
	return defaults
}

// Key is namespace/name.
func (p *PodInfo) Key() string { return p.Pod.Namespace + "/" + p.Pod.Name }

// HostPorts are the ports of the node that pod wants.
func HostPorts(pod *core.Pod) []HostPort {
	var ports []HostPort
	for c := range core.LastingContainers(&pod.Spec) { // the others don't keep theirs
		for _, p := range c.Ports {
			if p.HostPort > 0 {
				ports = append(ports, HostPort{IP: cmp.Or(p.HostIP, anyIP), Protocol: cmp.Or(p.Protocol, corev1.ProtocolTCP), Port: p.HostPort})
			}
		}
	}
	return ports
}

const anyIP = "0.0.0.0"

// Conflicts reports whether two pods cannot have both ports on one node.
func (p HostPort) Conflicts(other HostPort) bool {
	return p.Port == other.Port && p.Protocol == other.Protocol &&
		(p.IP == other.IP || p.IP == anyIP || other.IP == anyIP)
}

// QueuedPodInfo is a pod that waits for a node, with the history of its waiting.
// The queue owns it; in an attempt the cycle may read it.
type QueuedPodInfo struct {
	*PodInfo
	// Added is when the pod could first be attempted, without gates; Timestamp is
	// when it last entered the queue, which orders pods of equal priority.
	Added     time.Time
	Timestamp time.Time
	// Attempts counts the attempts that were begun.
	Attempts int
	// Flushed says that this attempt is made because the pod waited for long, and
	// not because anything happened.
	Flushed bool
	// Stamps are the moments of the attempt.
	Stamps *relay.Stamps
}

// Priority is the pod's priority; zero where it has none.
func Priority(pod *core.Pod) int32 {
	if pod.Spec.Priority != nil {
		return *pod.Spec.Priority
	}
	return 0
}
