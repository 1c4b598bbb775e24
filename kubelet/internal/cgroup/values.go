package cgroup

import (
	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"kctl/proto/core"
)

const (
	// Period is the time, in microseconds, over which CPU limits are kept, unless a node's
	// configuration says otherwise.
	Period = 100_000

	minShares     = 2
	maxShares     = 262_144
	sharesPerCore = 1024
	minQuota      = 1000
)

// Processes is the name of process ids as a resource that can be reserved.
const Processes corev1.ResourceName = "pid"

// Shares converts a CPU request, in thousandths of a core, to the kernel's weight.
func Shares(milli int64) uint64 {
	return uint64(min(max(milli*sharesPerCore/1000, minShares), maxShares))
}

// requestOf is the least request that Shares converts to the given weight.
func requestOf(shares uint64) int64 {
	return (int64(shares)*1000 + sharesPerCore - 1) / sharesPerCore
}

// Quota converts a CPU limit, in thousandths of a core, to microseconds of a
// period; zero for none.
func Quota(milli, period int64) int64 {
	if milli <= 0 {
		return 0
	}
	return max(milli*period/1000, minQuota)
}

// QOSClass is the pod's QoS class: the one that the API server recorded, or
// else the one that follows from its requests and limits.
func QOSClass(pod *core.Pod) corev1.PodQOSClass {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass
	}
	anything, guaranteed := false, true
	look := func(r corev1.ResourceRequirements) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, asked := r.Requests[name]
			limit := r.Limits[name]
			anything = anything || !request.IsZero() || !limit.IsZero()
			if limit.IsZero() || asked && request.Cmp(limit) != 0 {
				guaranteed = false
			}
		}
	}
	if resourcehelper.IsPodLevelResourcesSet(pod) { // resources: {} says nothing
		look(*pod.Spec.Resources)
	} else {
		for c := range core.Containers(&pod.Spec) {
			look(c.Resources)
		}
	}
	switch {
	case !anything:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

// podLimits are a pod's limits as a whole, zero where there is none: a sum is
// a limit only if every container has one.
func podLimits(pod *core.Pod) (milliCPU, memory int64) {
	limits := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})
	if Limited(pod, corev1.ResourceCPU) {
		milliCPU = limits.Cpu().MilliValue()
	}
	if Limited(pod, corev1.ResourceMemory) {
		memory = limits.Memory().Value()
	}
	return milliCPU, memory
}

// Limited says whether a pod as a whole has a limit of cpu or memory: its
// pod-level limit, or the sum of its containers' if each of them has one.
func Limited(pod *core.Pod, name corev1.ResourceName) bool {
	if pod.Spec.Resources != nil {
		if _, ok := pod.Spec.Resources.Limits[name]; ok {
			return true
		}
	}
	for c := range core.Containers(&pod.Spec) {
		if limit := c.Resources.Limits[name]; limit.IsZero() {
			return false
		}
	}
	return true
}
