package metrics

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"kctl/proto/core"
)

// Resources exports what pods request and their limits (Kubernetes docs, "System
// metrics", kube-scheduler metrics): of all pods that have not ended.
type Resources struct {
	Pods func() []*core.Pod
}

var (
	resourceLabels = []string{"namespace", "pod", "node", "scheduler", "priority", "resource", "unit"}
	requestDesc    = prometheus.NewDesc("kube_pod_resource_request", "What a pod asks for of a resource, as the scheduler counts it.",
		resourceLabels, nil)
	limitDesc = prometheus.NewDesc("kube_pod_resource_limit", "What a pod may use of a resource, as the scheduler counts it.", resourceLabels,
		nil)
)

// Describe implements prometheus.Collector.
func (Resources) Describe(descs chan<- *prometheus.Desc) {
	descs <- requestDesc
	descs <- limitDesc
}

// Collect implements prometheus.Collector.
func (r Resources) Collect(metrics chan<- prometheus.Metric) {
	options := resource.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true}
	for _, pod := range r.Pods() {
		collect(metrics, requestDesc, pod, resource.PodRequests(pod, options))
		collect(metrics, limitDesc, pod, resource.PodLimits(pod, options))
	}
}

func collect(metrics chan<- prometheus.Metric, desc *prometheus.Desc, pod *core.Pod, list corev1.ResourceList) {
	priority := ""
	if pod.Spec.Priority != nil {
		priority = strconv.FormatInt(int64(*pod.Spec.Priority), 10)
	}
	for name, quantity := range list {
		if quantity.IsZero() {
			continue
		}
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, quantity.AsApproximateFloat64(),
			pod.Namespace, pod.Name, pod.Spec.NodeName, pod.Spec.SchedulerName, priority, string(name), unitOf(name))
	}
}

// unitOf is what a resource is counted in, empty where that is not known.
func unitOf(name corev1.ResourceName) string {
	switch {
	case name == corev1.ResourceCPU:
		return "cores"
	case name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage, name == corev1.ResourceStorage,
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return "bytes"
	case strings.HasPrefix(string(name), corev1.ResourceAttachableVolumesPrefix):
		return "integer"
	}
	return ""
}
