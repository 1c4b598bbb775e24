package metrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/podmanager"
	"kctl/proto/core"
)

// Each resource that a container asks for otherwise counts, and nothing else that changes.
func TestResizesThatAreAskedForAreCounted(t *testing.T) {
	pod := func(requests, limits map[corev1.ResourceName]string) *core.Pod {
		list := func(amounts map[corev1.ResourceName]string) corev1.ResourceList {
			all := corev1.ResourceList{}
			for name, amount := range amounts {
				all[name] = resource.MustParse(amount)
			}
			return all
		}
		c := core.Container{Name: "main", Resources: corev1.ResourceRequirements{Requests: list(requests), Limits: list(limits)}}
		return &core.Pod{Spec: corev1.PodSpec{InitContainers: []core.Container{{Name: "first"}}, Containers: []core.Container{c}}}
	}
	type amounts = map[corev1.ResourceName]string
	registry := prometheus.NewRegistry()
	m := New(registry)
	before := pod(amounts{"cpu": "1", "memory": "1Gi"}, amounts{"memory": "2Gi", "ephemeral-storage": "1Gi"})
	now := pod(amounts{"cpu": "500m", "memory": "1024Mi"}, amounts{"cpu": "2", "memory": "3Gi", "ephemeral-storage": "2Gi"})
	now.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}
	m.ResizesAsked(before, now)
	m.ResizesAsked(now, now.DeepCopy())
	m.ResizesAsked(pod(nil, amounts{"cpu": "2"}), pod(nil, nil))
	want := `
		# HELP kubelet_container_requested_resizes_total Number of resizes of containers that were asked for, each resource by itself. ` +
		`requirement is requests or limits, and operation add, remove, increase or decrease.
		# TYPE kubelet_container_requested_resizes_total counter
		kubelet_container_requested_resizes_total{operation="add",requirement="limits",resource="cpu"} 1
		kubelet_container_requested_resizes_total{operation="decrease",requirement="requests",resource="cpu"} 1
		kubelet_container_requested_resizes_total{operation="increase",requirement="limits",resource="memory"} 1
		kubelet_container_requested_resizes_total{operation="remove",requirement="limits",resource="cpu"} 1
	`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "kubelet_container_requested_resizes_total"); err != nil {
		t.Error(err)
	}
}

// resizes is a podMetrics that tells of nothing else.
type resizes struct{ podMetrics }

func (r resizes) Collect(metrics chan<- prometheus.Metric) {
	r.collectResizes(metrics, func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	})
}

// Pods that wait for a resize are counted by their priority, and those that get one all together.
func TestPodsThatAreResizedAreCounted(t *testing.T) {
	pods, statuses := podmanager.New(), map[types.UID]core.PodStatus{}
	add := func(name string, priority int32, conditions ...core.PodCondition) {
		pods.Set(&core.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{Priority: &priority}})
		statuses[types.UID(name)] = core.PodStatus{Conditions: conditions}
	}
	waits := func(reason string) core.PodCondition {
		return core.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason}
	}
	progress := core.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue}
	add("critical", core.SystemCriticalPriority, waits(corev1.PodReasonDeferred))
	add("high", 100_000, waits(corev1.PodReasonDeferred), progress)
	add("medium", 99_999, waits(corev1.PodReasonDeferred))
	add("normal", 0, waits(corev1.PodReasonInfeasible))
	add("too", 0, waits(corev1.PodReasonInfeasible))
	add("low", -999, waits(corev1.PodReasonDeferred))
	add("very low", -1000, waits(corev1.PodReasonDeferred))
	add("resized", 0, progress)
	add("was", 0, core.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionFalse})
	pods.Set(&core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "new", UID: "new"}})
	status := func(uid types.UID) (core.PodStatus, bool) { s, known := statuses[uid]; return s, known }
	want := `
		# HELP kubelet_pod_in_progress_resizes Number of pods that are being resized.
		# TYPE kubelet_pod_in_progress_resizes gauge
		kubelet_pod_in_progress_resizes 2
		# HELP kubelet_pod_pending_resizes Number of pods that wait for a resize. priority_bucket classifies their priority (system-critical: >=2000000000, ` +
		`high: 100000..1999999999, medium: 1..99999, normal: 0, low: -999..-1, very-low: <=-1000), reason says why they wait (deferred, infeasible).
		# TYPE kubelet_pod_pending_resizes gauge
		kubelet_pod_pending_resizes{priority_bucket="high",reason="deferred"} 1
		kubelet_pod_pending_resizes{priority_bucket="low",reason="deferred"} 1
		kubelet_pod_pending_resizes{priority_bucket="medium",reason="deferred"} 1
		kubelet_pod_pending_resizes{priority_bucket="normal",reason="infeasible"} 2
		kubelet_pod_pending_resizes{priority_bucket="system-critical",reason="deferred"} 1
		kubelet_pod_pending_resizes{priority_bucket="very-low",reason="deferred"} 1
	`
	if err := testutil.CollectAndCompare(resizes{podMetrics{Sources{Pods: pods, Status: status}}}, strings.NewReader(want),
		"kubelet_pod_in_progress_resizes", "kubelet_pod_pending_resizes"); err != nil {
		t.Error(err)
	}
}
