package metrics

import (
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
)

var (
	pendingDesc = populationDesc("kubelet_pod_pending_resizes", "Number of pods that wait for a resize. "+
		"priority_bucket classifies their priority (system-critical: >=2000000000, high: 100000..1999999999, medium: 1..99999, normal: 0, "+
		"low: -999..-1, very-low: <=-1000), "+
		"reason says why they wait (deferred, infeasible).", "reason", "priority_bucket")
	resizingDesc = populationDesc("kubelet_pod_in_progress_resizes", "Number of pods that are being resized.")
)

// measureResizes makes the metrics of in-place resizes (KEP-1287).
func (m *Metrics) measureResizes(registry *prometheus.Registry) {
	m.resizesAsked = counters("container_requested_resizes_total",
		"Number of resizes of containers that were asked for, each resource by itself. requirement is requests or limits, and operation "+
			"add, remove, increase or decrease.", "resource", "requirement", "operation")
	m.resizeTime = histograms("pod_resize_duration_milliseconds", "Duration in milliseconds to resize a pod's containers.",
		[]float64{10, 50, 100, 500, 1000, 2000, 5000, 10000, 20000, 30000, 60000, 120000, 300000, 600000}, "success")
	registry.MustRegister(m.resizesAsked, m.resizeTime)
}

// ResizesAsked counts what a pod asks for otherwise than before.
func (m *Metrics) ResizesAsked(before, now *core.Pod) {
	had := map[string]corev1.ResourceRequirements{}
	for c := range core.Containers(&before.Spec) {
		had[c.Name] = c.Resources
	}
	for c := range core.Containers(&now.Spec) {
		was, known := had[c.Name]
		if !known {
			continue
		}
		for requirement, lists := range map[string][2]corev1.ResourceList{
			"requests": {was.Requests, c.Resources.Requests}, "limits": {was.Limits, c.Resources.Limits},
		} {
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				if operation := resizeOperation(lists[0][name], lists[1][name]); operation != "" {
					m.resizesAsked.WithLabelValues(string(name), requirement, operation).Inc()
				}
			}
		}
	}
}

func resizeOperation(before, now resource.Quantity) string {
	switch order := now.Cmp(before); {
	case order == 0:
		return ""
	case before.IsZero():
		return "add"
	case now.IsZero():
		return "remove"
	case order < 0:
		return "decrease"
	}
	return "increase"
}

// ObserveResize takes how long it took to resize a pod's containers, or not to.
func (m *Metrics) ObserveResize(took time.Duration, done bool) {
	m.resizeTime.WithLabelValues(strconv.FormatBool(done)).Observe(float64(took.Milliseconds()))
}

// collectResizes counts the pods whose status says that they wait for a resize, or get one.
func (p podMetrics) collectResizes(metrics chan<- prometheus.Metric, gauge func(*prometheus.Desc, float64, ...string)) {
	pending, resizing := newTally(pendingDesc), 0
	for _, pod := range p.Pods.Pods() {
		status, _ := p.Status(pod.UID)
		for _, c := range status.Conditions {
			switch {
			case c.Status != corev1.ConditionTrue:
			case c.Type == corev1.PodResizePending:
				pending.add(1, strings.ToLower(c.Reason), priorityBucket(pod))
			case c.Type == corev1.PodResizeInProgress:
				resizing++
			}
		}
	}
	pending.tell(metrics, 2)
	gauge(resizingDesc, float64(resizing))
}

func priorityBucket(pod *core.Pod) string {
	switch p := ptr.Deref(pod.Spec.Priority, 0); {
	case p >= core.SystemCriticalPriority:
		return "system-critical"
	case p >= 100_000:
		return "high"
	case p > 0:
		return "medium"
	case p == 0:
		return "normal"
	case p > -1000:
		return "low"
	}
	return "very-low"
}
