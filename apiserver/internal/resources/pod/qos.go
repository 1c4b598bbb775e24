package pod

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/proto/core"
)

var qosResources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// qosClass is Guaranteed if every container has limits for cpu and memory and
// equal requests, BestEffort if none has any, and otherwise Burstable. If there
// are pod-level resources, be they 0, only those count.
func qosClass(spec *core.PodSpec) corev1.PodQOSClass {
	any, all := false, true
	if r := spec.Resources; r != nil && (namesPodLevel(r.Requests) || namesPodLevel(r.Limits)) {
		spec = &core.PodSpec{Containers: []core.Container{{Resources: *r}}}
	}
	for c := range core.Containers(spec) {
		any = any || requestsAny(c.Resources.Requests) || requestsAny(c.Resources.Limits)
		all = all && isGuaranteed(&c.Resources)
	}
	switch {
	case !any:
		return corev1.PodQOSBestEffort
	case all:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

func namesPodLevel(list corev1.ResourceList) bool {
	for name := range list {
		if podLevel(name) {
			return true
		}
	}
	return false
}

func requestsAny(list corev1.ResourceList) bool {
	for _, name := range qosResources {
		if amount, ok := list[name]; ok && amount.Sign() > 0 {
			return true
		}
	}
	return false
}

func isGuaranteed(r *corev1.ResourceRequirements) bool {
	zero := resource.Quantity{}
	for _, name := range qosResources {
		limit, request := r.Limits[name], r.Requests[name]
		if limit.Cmp(zero) <= 0 || limit.Cmp(request) != 0 {
			return false
		}
	}
	return true
}

// BestEffort reports whether a pod with this spec has nothing reserved for it.
func BestEffort(spec *core.PodSpec) bool { return qosClass(spec) == corev1.PodQOSBestEffort }
