package admit

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/podmanager"
	"kctl/proto/core"
)

// Victims are the pods that must end to make room for a critical pod, no more than
// necessary; none at all if that does not help. Pods of lower QoS classes go first,
// and among these those of lower priority (Kubernetes docs, "Guaranteed Scheduling
// For Critical Add-On Pods"). Pods that are ending anyway, as leaving says, come
// before all others.
func Victims(pod *core.Pod, others []*core.Pod, allocatable corev1.ResourceList, leaving func(*core.Pod) bool) []*core.Pod {
	var staying, victims []*core.Pod
	for _, other := range others {
		if mayPreempt(pod, other) {
			victims = append(victims, other)
		} else {
			staying = append(staying, other)
		}
	}
	if !fits(pod, staying, allocatable).Admitted {
		return nil
	}
	slices.SortStableFunc(victims, func(a, b *core.Pod) int {
		return cmp.Or(cmp.Compare(preemptionOrder(b, leaving), preemptionOrder(a, leaving)),
			cmp.Compare(ptr.Deref(b.Spec.Priority, 0), ptr.Deref(a.Spec.Priority, 0)))
	})
	// The most valuable pod is the first to be considered for staying.
	return slices.DeleteFunc(victims, func(victim *core.Pod) bool {
		spared := fits(pod, append(staying, victim), allocatable).Admitted
		if spared {
			staying = append(staying, victim)
		}
		return spared
	})
}

func mayPreempt(pod, other *core.Pod) bool {
	return !podmanager.IsCritical(other) || pod.Spec.Priority != nil && other.Spec.Priority != nil && *pod.Spec.Priority > *other.Spec.Priority
}

// preemptionOrder orders pods by value: the most valuable goes last.
func preemptionOrder(pod *core.Pod, leaving func(*core.Pod) bool) int {
	if leaving(pod) {
		return -1
	}
	return class(pod)
}

// class orders pods by their QoS class.
func class(pod *core.Pod) int {
	return slices.Index([]corev1.PodQOSClass{corev1.PodQOSBestEffort, corev1.PodQOSBurstable, corev1.PodQOSGuaranteed}, cgroup.QOSClass(pod))
}
