package pod

import (
	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// requestsFromLimits requests as much as the limit where only that is given.
func requestsFromLimits(r *corev1.ResourceRequirements) {
	if r.Limits == nil {
		return
	}
	if r.Requests == nil {
		r.Requests = make(corev1.ResourceList, len(r.Limits))
	}
	for name, amount := range r.Limits {
		if _, ok := r.Requests[name]; !ok {
			r.Requests[name] = amount.DeepCopy()
		}
	}
}

// defaultPodResources requests for the pod as a whole what its containers
// request together, and what they don't request, up to the pod's limit.
func defaultPodResources(spec *core.PodSpec) {
	r := spec.Resources
	if r == nil {
		return
	}
	roundUp(r.Limits)
	roundUp(r.Requests)
	if len(r.Limits) == 0 && len(r.Requests) == 0 {
		return
	}
	requests := r.Requests
	if requests == nil {
		requests = corev1.ResourceList{}
	}
	for name, amount := range containerRequests(spec) {
		if _, ok := requests[name]; !ok && podLevel(name) && check.IsOvercommit(name) {
			requests[name] = amount
		}
	}
	for name, amount := range r.Limits {
		if _, ok := requests[name]; !ok && podLevel(name) {
			requests[name] = amount.DeepCopy()
		}
	}
	if len(requests) > 0 {
		r.Requests = requests
	}
}

// podLevel reports whether a pod as a whole may ask for the resource.
func podLevel(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || check.IsHugePage(name)
}

// containerRequests is what the containers need at their hungriest moment:
// all of them side by side with the sidecars, or one init container beside the
// sidecars started before it.
func containerRequests(spec *core.PodSpec) corev1.ResourceList {
	total := corev1.ResourceList{}
	for i := range spec.Containers {
		add(total, spec.Containers[i].Resources.Requests)
	}
	sidecars, highest := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		now := c.Resources.Requests
		if isSidecar(c) {
			add(total, c.Resources.Requests)
			add(sidecars, c.Resources.Requests)
			now = sidecars
		} else {
			now = now.DeepCopy()
			if now == nil {
				now = corev1.ResourceList{}
			}
			add(now, sidecars)
		}
		raise(highest, now)
	}
	raise(total, highest)
	return total
}

func isSidecar(c *core.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func add(total, more corev1.ResourceList) {
	for name, amount := range more {
		sum := amount.DeepCopy()
		sum.Add(total[name])
		total[name] = sum
	}
}

func raise(highest, to corev1.ResourceList) {
	for name, amount := range to {
		if now, ok := highest[name]; !ok || amount.Cmp(now) > 0 {
			highest[name] = amount.DeepCopy()
		}
	}
}

// roundUp drops what is finer than a thousandth, as upstream does.
func roundUp(list corev1.ResourceList) {
	for name, amount := range list {
		if !amount.RoundUp(-3) {
			list[name] = amount
		}
	}
}
