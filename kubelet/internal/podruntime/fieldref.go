package podruntime

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/proto/core"
)

// FieldValue is a field of the pod that does not change while it runs, as the
// downward API writes it.
func FieldValue(pod *core.Pod, path string) (string, error) {
	if field, key, ok := subscript(path); ok {
		switch field {
		case "metadata.labels":
			return pod.Labels[key], nil
		case "metadata.annotations":
			return pod.Annotations[key], nil
		}
		return "", fmt.Errorf("fieldRef %s: only labels and annotations have subscripts", path)
	}
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return formatMap(pod.Labels), nil
	case "metadata.annotations":
		return formatMap(pod.Annotations), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	}
	return "", fmt.Errorf("fieldRef %s is not supported", path)
}

// subscript takes path['key'] apart.
func subscript(path string) (field, key string, ok bool) {
	field, rest, found := strings.Cut(path, "['")
	key, closed := strings.CutSuffix(rest, "']")
	return field, key, found && closed
}

func formatMap(m map[string]string) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, fmt.Sprintf("%s=%s", key, strconv.Quote(m[key])))
	}
	return strings.Join(lines, "\n")
}

// ResourceValue is a request or limit of a container, in units of the divisor
// and rounded up. Container is the one that asks, for references that name
// none. A limit that is not set is what the node can give.
func ResourceValue(pod *core.Pod, container string, ref *corev1.ResourceFieldSelector, allocatable corev1.ResourceList) (string, error) {
	if ref.ContainerName != "" {
		container = ref.ContainerName
	}
	spec := findContainer(pod, container)
	if spec == nil {
		return "", fmt.Errorf("resourceFieldRef %s: the pod has no container %q", ref.Resource, container)
	}
	kind, name, ok := strings.Cut(ref.Resource, ".")
	list := spec.Resources.Limits
	if kind == "requests" {
		list = spec.Resources.Requests
	}
	resourceName := corev1.ResourceName(name)
	if !ok || (kind != "limits" && kind != "requests") || !downwardResource(resourceName) {
		return "", fmt.Errorf("resourceFieldRef %s is not supported", ref.Resource)
	}
	quantity, set := list[resourceName]
	if !set && kind == "limits" {
		quantity = allocatable[resourceName]
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	value, unit := quantity.Value(), divisor.Value()
	if resourceName == corev1.ResourceCPU {
		value, unit = quantity.MilliValue(), divisor.MilliValue()
	}
	if unit <= 0 {
		return "", fmt.Errorf("resourceFieldRef %s: divisor %s is not usable", ref.Resource, divisor.String())
	}
	return strconv.FormatInt((value+unit-1)/unit, 10), nil
}

func downwardResource(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// findContainer is the pod's container of that name, of whatever kind, or nil.
func findContainer(pod *core.Pod, name string) *core.Container {
	for _, specs := range [][]core.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range specs {
			if specs[i].Name == name {
				return &specs[i]
			}
		}
	}
	for _, e := range pod.Spec.EphemeralContainers {
		if e.Name == name {
			c := core.Container(e.EphemeralContainerCommon)
			return &c
		}
	}
	return nil
}
