package pod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// requestsFromLimits sets requests to the limits if only those are given.
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

// defaultPodResources completes pod-level resources from those of the containers
// (KEP-2837). It runs after admission, which may add containers.
func defaultPodResources(spec *core.PodSpec) {
	r := spec.Resources
	if r == nil || len(r.Limits) == 0 && len(r.Requests) == 0 {
		return
	}
	containers := &core.Pod{Spec: core.PodSpec{Containers: spec.Containers, InitContainers: spec.InitContainers}}
	limits := resourcehelper.AggregateContainerLimits(containers, resourcehelper.PodResourcesOptions{})
	for name, amount := range limits {
		if _, requested := r.Requests[name]; podLevel(name) && check.IsHugePage(name) && !requested {
			fill(&r.Limits, name, amount)
		}
	}
	for name, amount := range resourcehelper.AggregateContainerRequests(containers, resourcehelper.PodResourcesOptions{}) {
		if podLevel(name) && check.IsOvercommit(name) {
			fill(&r.Requests, name, amount)
		}
	}
	for name, amount := range r.Limits {
		if podLevel(name) {
			fill(&r.Requests, name, amount)
		}
	}
	for name, request := range r.Requests {
		if !podLevel(name) || !allLimit(spec, name) {
			continue
		}
		limit := limits[name]
		if request.Cmp(limit) > 0 {
			limit = request
		}
		fill(&r.Limits, name, limit)
	}
}

// fill adds a missing amount.
func fill(list *corev1.ResourceList, name corev1.ResourceName, amount resource.Quantity) {
	if _, ok := (*list)[name]; ok {
		return
	}
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[name] = amount.DeepCopy()
}

// allLimit reports whether every container of a pod has a limit of a resource.
func allLimit(spec *core.PodSpec, name corev1.ResourceName) bool {
	unlimited := func(c core.Container) bool {
		_, ok := c.Resources.Limits[name]
		return !ok
	}
	return !slices.ContainsFunc(spec.Containers, unlimited) && !slices.ContainsFunc(spec.InitContainers, unlimited)
}

// podLevel reports whether the resource can be requested at pod level.
func podLevel(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || check.IsHugePage(name)
}
