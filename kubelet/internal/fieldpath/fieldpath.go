// Package fieldpath reads the values that a pod may learn about itself: its
// metadata, and the resources of its containers.
//
// The downward API volumes use it, and environment variables can. It is pure:
// it reads the pod that it is given and nothing else. It does not handle fields
// that are known only once the pod has a status or a node (addresses).
package fieldpath

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/proto/core"
)

// Metadata is the value of a field below metadata, such as "metadata.name" or
// "metadata.labels['app']". A label or annotation that is not there is empty.
func Metadata(pod *core.Pod, path string) (string, error) {
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return lines(pod.Labels), nil
	case "metadata.annotations":
		return lines(pod.Annotations), nil
	}
	if key, ok := subscript(path, "metadata.labels"); ok {
		return pod.Labels[key], nil
	}
	if key, ok := subscript(path, "metadata.annotations"); ok {
		return pod.Annotations[key], nil
	}
	return "", fmt.Errorf("unsupported fieldPath: %v", path)
}

// subscript is KEY of "FIELD['KEY']".
func subscript(path, field string) (key string, ok bool) {
	key, ok = strings.CutPrefix(path, field+"['")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(key, "']")
}

// lines writes one key="value" a line, sorted.
func lines(values map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&b, "%s=%q\n", key, values[key])
	}
	// Without a final newline, as these files have always been.
	return strings.TrimSuffix(b.String(), "\n")
}

// Resource is the value of a resource field of one of the pod's containers, in
// units of the divisor and rounded up. A limit that the container does not set
// is the pod's or, without one, the most that the node could give.
func Resource(pod *core.Pod, container string, field *corev1.ResourceFieldSelector, allocatable corev1.ResourceList) (string, error) {
	if field.ContainerName != "" {
		container = field.ContainerName
	}
	i := slices.IndexFunc(pod.Spec.Containers, func(c core.Container) bool { return c.Name == container })
	if i >= 0 {
		return ContainerResource(pod, &pod.Spec.Containers[i], field, allocatable)
	}
	i = slices.IndexFunc(pod.Spec.InitContainers, func(c core.Container) bool { return c.Name == container })
	if i >= 0 {
		return ContainerResource(pod, &pod.Spec.InitContainers[i], field, allocatable)
	}
	return "", fmt.Errorf("container %q not found", container)
}

// ContainerResource is Resource for a given container.
func ContainerResource(pod *core.Pod, container *core.Container, field *corev1.ResourceFieldSelector,
	allocatable corev1.ResourceList) (string, error) {
	side, name, _ := strings.Cut(field.Resource, ".")
	known := name == "cpu" || name == "memory" || name == "ephemeral-storage" || strings.HasPrefix(name, corev1.ResourceHugePagesPrefix)
	if !known || side != "limits" && side != "requests" {
		return "", fmt.Errorf("unsupported container resource: %v", field.Resource)
	}
	list := container.Resources.Limits
	if side == "requests" {
		list = container.Resources.Requests
	}
	quantity, set := list[corev1.ResourceName(name)]
	if (!set || quantity.IsZero()) && side == "limits" {
		quantity = allocatable[corev1.ResourceName(name)]
		if whole, ok := podLimit(pod, corev1.ResourceName(name)); ok {
			quantity = whole
		}
	}
	divisor := field.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	if name == "cpu" {
		return units(quantity.MilliValue(), divisor.MilliValue()), nil
	}
	return units(quantity.Value(), divisor.Value()), nil
}

// podLimit is the limit of all containers together, which exists for cpu and
// memory (KEP-2837).
func podLimit(pod *core.Pod, name corev1.ResourceName) (resource.Quantity, bool) {
	if pod.Spec.Resources == nil || name != corev1.ResourceCPU && name != corev1.ResourceMemory {
		return resource.Quantity{}, false
	}
	limit := pod.Spec.Resources.Limits[name]
	return limit, !limit.IsZero()
}

// Limits are a container's effective limits: its own and, for cpu and memory
// where it has none, the pod's (KEP-2837). own is not changed.
func Limits(pod *core.Pod, own corev1.ResourceList) corev1.ResourceList {
	limits := corev1.ResourceList{}
	maps.Copy(limits, own)
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if quantity := limits[name]; quantity.IsZero() {
			if whole, ok := podLimit(pod, name); ok {
				limits[name] = whole
			}
		}
	}
	return limits
}

func units(value, divisor int64) string {
	return strconv.FormatInt(int64(math.Ceil(float64(value)/float64(divisor))), 10)
}
