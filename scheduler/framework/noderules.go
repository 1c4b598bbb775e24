package framework

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"kctl/proto/core"
)

// Tolerates reports whether one of the tolerations matches a taint. Lt and Gt
// are always supported: an API server with that feature disabled rejects such
// tolerations.
func Tolerates(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	for i := range tolerations {
		if tolerations[i].ToleratesTaint(klog.Logger{}, taint, true) {
			return true
		}
	}
	return false
}

// ToleratesAll reports whether a pod tolerates all of the taints that keep pods away.
func ToleratesAll(pod *core.Pod, taints []corev1.Taint) bool {
	for i := range taints {
		taint := &taints[i]
		hard := taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
		if hard && !Tolerates(pod.Spec.Tolerations, taint) {
			return false
		}
	}
	return true
}

// RequiredNodeTerms returns the terms of a pod's required node affinity; nil if
// it has none.
func RequiredNodeTerms(pod *core.Pod) *corev1.NodeSelector {
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}
