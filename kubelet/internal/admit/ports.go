package admit

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kctl/proto/core"
)

// conflictingPort finds a host port of the pod that another pod has.
func conflictingPort(pod *core.Pod, others []*core.Pod) (string, bool) {
	for _, mine := range hostPorts(pod) {
		for _, other := range others {
			for _, theirs := range hostPorts(other) {
				if mine.HostPort == theirs.HostPort && mine.Protocol == theirs.Protocol && overlap(mine.HostIP, theirs.HostIP) {
					return fmt.Sprintf("%d/%s", mine.HostPort, mine.Protocol), true
				}
			}
		}
	}
	return "", false
}

// hostPorts returns the host ports that a pod has for as long as it runs, its
// sidecars' included.
func hostPorts(pod *core.Pod) []corev1.ContainerPort {
	var ports []corev1.ContainerPort
	for c := range core.LastingContainers(&pod.Spec) {
		for _, p := range c.Ports {
			if p.HostPort > 0 {
				ports = append(ports, p)
			}
		}
	}
	return ports
}

// overlap says that two addresses can't both listen on one port.
func overlap(a, b string) bool {
	wildcard := func(ip string) bool { return ip == "" || ip == "0.0.0.0" || ip == "::" }
	return wildcard(a) || wildcard(b) || a == b
}

func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	return slices.Sorted(maps.Keys(list))
}

// scaled is a quantity as upstream prints it: cpu in thousandths.
func scaled(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}
