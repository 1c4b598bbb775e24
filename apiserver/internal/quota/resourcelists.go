package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/proto/core"
)

// withNames is the part of list with the given names.
func withNames(list, names corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, amount := range list {
		if _, ok := names[name]; ok {
			out[name] = amount
		}
	}
	return out
}

// addAmounts adds amounts to list.
func addAmounts(list, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		sum := list[name].DeepCopy()
		sum.Add(amount)
		list[name] = sum
	}
}

// excess is by how much list exceeds was; names that don't are left out.
func excess(list, was corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, amount := range list {
		left := amount.DeepCopy()
		left.Sub(was[name])
		if left.Sign() > 0 {
			out[name] = left
		}
	}
	return out
}

// subtractAmounts subtracts amounts from list, down to zero.
func subtractAmounts(list, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		left, ok := list[name]
		if !ok {
			continue
		}
		left = left.DeepCopy()
		left.Sub(amount)
		if left.Sign() < 0 {
			left = resource.Quantity{Format: left.Format}
		}
		list[name] = left
	}
}

// exceeded lists the names in amounts of which used is more than hard.
func exceeded(used, hard, amounts corev1.ResourceList) []corev1.ResourceName {
	var out []corev1.ResourceName
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		limit, limited := hard[name]
		have := used[name]
		if limited && have.Cmp(limit) > 0 {
			out = append(out, name)
		}
	}
	return out
}

func formatAmounts(list corev1.ResourceList, names []corev1.ResourceName) string {
	parts := make([]string, 0, len(names))
	for _, name := range names {
		amount := list[name]
		parts = append(parts, string(name)+"="+amount.String())
	}
	return strings.Join(parts, ",")
}

func equalAmounts(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

// computeResources are the resources that containers have to specify if a quota limits
// them: otherwise their usage is unknown.
var computeResources = map[corev1.ResourceName]func(*core.Container) bool{
	corev1.ResourceCPU:            hasRequest(corev1.ResourceCPU),
	corev1.ResourceMemory:         hasRequest(corev1.ResourceMemory),
	corev1.ResourceRequestsCPU:    hasRequest(corev1.ResourceCPU),
	corev1.ResourceRequestsMemory: hasRequest(corev1.ResourceMemory),
	corev1.ResourceLimitsCPU:      hasLimit(corev1.ResourceCPU),
	corev1.ResourceLimitsMemory:   hasLimit(corev1.ResourceMemory),
}

func hasRequest(name corev1.ResourceName) func(*core.Container) bool {
	return func(c *core.Container) bool { _, ok := c.Resources.Requests[name]; return ok }
}

func hasLimit(name corev1.ResourceName) func(*core.Container) bool {
	return func(c *core.Container) bool { _, ok := c.Resources.Limits[name]; return ok }
}

// unspecified says which containers don't specify which of the quota's resources;
// empty if none.
func unspecified(q *corev1.ResourceQuota, pod *core.Pod) string {
	silent := map[corev1.ResourceName][]string{}
	for name := range q.Spec.Hard {
		says := computeResources[name]
		if says == nil || podSpecifies(pod, name) {
			continue
		}
		for c := range core.Containers(&pod.Spec) {
			if !says(c) {
				silent[name] = append(silent[name], c.Name)
			}
		}
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(silent)) {
		slices.Sort(silent[name])
		parts = append(parts, fmt.Sprintf("%s for: %s", name, strings.Join(silent[name], ",")))
	}
	return strings.Join(parts, "; ")
}

// podSpecifies reports whether the pod-level resources specify it for all containers.
func podSpecifies(pod *core.Pod, name corev1.ResourceName) bool {
	r := pod.Spec.Resources
	if r == nil {
		return false
	}
	return computeResources[name](&core.Container{Resources: *r})
}
