package eviction

import (
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/cgroup"
	"kctl/kubelet/internal/podmanager"
	"kctl/proto/core"
)

// Admit says why a node under pressure does not accept a pod; "" if it does. A
// pod that an earlier kubelet admitted stays; only its rank decides whether it
// is evicted.
func (m *Manager) Admit(pod *core.Pod) string {
	m.lock.Lock()
	defer m.lock.Unlock()
	var under []corev1.NodeConditionType
	for condition, is := range m.underPressure {
		if is {
			under = append(under, condition)
		}
	}
	if len(under) == 0 || podmanager.IsCritical(pod) || pod.Status.StartTime != nil {
		return ""
	}
	if len(under) == 1 && under[0] == corev1.NodeMemoryPressure && mayRunShortOfMemory(pod) {
		return ""
	}
	slices.Sort(under)
	return fmt.Sprintf("The node had condition: %v. ", under)
}

// mayRunShortOfMemory says that a node that is short only of memory accepts the pod: it is
// not of the class BestEffort, or tolerates the shortage.
func mayRunShortOfMemory(pod *core.Pod) bool {
	taint := &corev1.Taint{Key: corev1.TaintNodeMemoryPressure, Effect: corev1.TaintEffectNoSchedule}
	return cgroup.QOSClass(pod) != corev1.PodQOSBestEffort ||
		slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(logr.Discard(), taint, false) })
}
