package explain

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"kctl/proto/core"
	"kctl/scheduler/framework"
)

// Lack is what a node has too little of for the pod.
type Lack struct {
	Resource string `json:"resource"`
	Asked    string `json:"asked"`
	Free     string `json:"free"` // below zero where more was promised than there is
	Of       string `json:"of"`
}

// lacks compares what the pod asks for with what the node's pods leave free.
func lacks(want *framework.Resource, node *framework.NodeInfo) []Lack {
	var all []Lack
	have, used := &node.Allocatable, &node.Requested
	add := func(name corev1.ResourceName, want, have, used int64, text func(int64) string) {
		if want > 0 && want > have-used {
			all = append(all, Lack{string(name), text(want), text(have - used), text(have)})
		}
	}
	add(corev1.ResourcePods, 1, have.AllowedPods, int64(len(node.Pods)), count)
	add(corev1.ResourceCPU, want.MilliCPU, have.MilliCPU, used.MilliCPU, func(milli int64) string {
		return apiresource.NewMilliQuantity(milli, apiresource.DecimalSI).String()
	})
	add(corev1.ResourceMemory, want.Memory, have.Memory, used.Memory, bytes)
	add(corev1.ResourceEphemeralStorage, want.EphemeralStorage, have.EphemeralStorage, used.EphemeralStorage, bytes)
	for _, name := range slices.Sorted(maps.Keys(want.Scalar)) {
		add(name, want.Scalar[name], have.Scalar[name], used.Scalar[name], count)
	}
	return all
}

// untolerated are the node's taints that keep the pod away, each as KEY=VALUE:EFFECT.
func untolerated(pod *core.Pod, node *framework.NodeInfo) []string {
	var all []string
	for i := range node.Taints {
		if !framework.ToleratesAll(pod, node.Taints[i:i+1]) {
			all = append(all, node.Taints[i].ToString())
		}
	}
	return all
}

func count(n int64) string { return strconv.FormatInt(n, 10) }

// bytes are rounded to as many digits as people read.
func bytes(n int64) string {
	units, at, value := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi"}, 0, float64(n)
	for at+1 < len(units) && (value >= 1024 || value <= -1024) {
		value, at = value/1024, at+1
	}
	return strconv.FormatFloat(float64(int64(value*10))/10, 'f', -1, 64) + units[at]
}
