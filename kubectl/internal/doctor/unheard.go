package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/proto/core"
)

// Patience is how long a scheduler or a controller may take to look at what is new.
const Patience = 10 * time.Second

// NoScheduler tells whether a pod has waited longer than that, and its scheduler, or the
// API server for gates, has not even said what keeps it.
func NoScheduler(pod *core.Pod, now time.Time) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && now.Sub(pod.CreationTimestamp.Time) > Patience &&
		!slices.ContainsFunc(pod.Status.Conditions, func(c core.PodCondition) bool { return c.Type == corev1.PodScheduled })
}

// NoKubelet tells whether a pod has waited longer than that on a node whose kubelet has
// not even said that it has seen it.
func NoKubelet(pod *core.Pod, now time.Time) bool {
	return pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && pod.Status.StartTime == nil && len(pod.Status.ContainerStatuses) == 0 &&
		!core.Ended(pod.Status.Phase) &&
		now.Sub(placed(pod)) > Patience
}

// placed is when a pod got its node.
func placed(pod *core.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time
		}
	}
	return pod.CreationTimestamp.Time
}

// Unheard tells whether a workload's controller has yet to see what is wanted of it:
// one in apps/v1 records which generation it has seen.
func Unheard(object *unstructured.Unstructured) bool {
	if group := object.GroupVersionKind().Group; group != "apps" || object.GetGeneration() == 0 {
		return false
	}
	seen, err := observed(object)
	return err == nil && seen < object.GetGeneration()
}

// UnheardLong tells whether that lasts longer than Patience.
func UnheardLong(object *unstructured.Unstructured, now time.Time) bool {
	seen, _ := observed(object)
	return Unheard(object) && lasts(object, seen, now)
}

func observed(object *unstructured.Unstructured) (int64, error) {
	seen, _, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	return seen, err
}

// lasts tells whether an object is older than Patience as it is. One of which a controller
// has seen a generation may have been changed a moment ago: of `scale` no time is recorded.
func lasts(object metav1.Object, seen int64, now time.Time) bool {
	changed := object.GetCreationTimestamp().Time
	for _, write := range object.GetManagedFields() {
		switch {
		case seen == 0 || write.Subresource == "status":
		case write.Time == nil:
			return false
		case write.Time.After(changed):
			changed = write.Time.Time
		}
	}
	return now.Sub(changed) > Patience
}

// UnheardText says what an unheard workload waits for, and what to do.
func UnheardText(object *unstructured.Unstructured) string {
	kind := strings.ToLower(object.GetKind())
	return fmt.Sprintf("no controller has taken up %[1]s %[2]q as it is now: is there a kube-controller-manager, which makes the pods of a "+
		"%[1]s? (\"kctl doctor\" says more)",
		kind, object.GetName())
}

// makesPods are the kinds whose pods a controller makes.
var makesPods = map[string]bool{
	"apps/Deployment": true, "apps/ReplicaSet": true, "apps/StatefulSet": true, "apps/DaemonSet": true,
	"batch/Job": true, "batch/CronJob": true, "/ReplicationController": true,
}

// NeedsController tells whether an object waits for a controller to make its pods. Of a cron
// job nothing tells, before its time, that one has seen it.
func NeedsController(object *unstructured.Unstructured) bool {
	kind := object.GroupVersionKind()
	if !makesPods[kind.Group+"/"+kind.Kind] {
		return false
	}
	suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend")
	replicas, counted, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	if suspended || counted && replicas == 0 {
		return false
	}
	seen, err := observed(object)
	_, started, _ := unstructured.NestedString(object.Object, "status", "startTime") // of a job
	return err == nil && seen == 0 && !started
}

// UncontrolledText says why such an object has no pods, and what to do.
func UncontrolledText(object *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %q has no pods yet, and this cluster shows no sign of a kube-controller-manager, which makes them: run one "+
		"(docs/networking.md), or pods by themselves (kctl run)",
		strings.ToLower(object.GetKind()), object.GetName())
}
