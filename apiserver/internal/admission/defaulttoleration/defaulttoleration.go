// Package defaulttoleration lets pods stay on a node for some minutes after it
// has become not ready or unreachable, unless they say otherwise.
package defaulttoleration

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/admission"
	"kctl/proto/core"
)

// Name is upstream's name.
const Name = "DefaultTolerationSeconds"

// Plugin is the plugin.
type Plugin struct {
	admission.OnWrites
	// How long pods stay on a node that is not ready, and on an unreachable one.
	NotReadySeconds, UnreachableSeconds int64
}

// Admit adds the tolerations that the pod lacks.
func (p Plugin) Admit(_ context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*core.Pod)
	if !ok || a.Subresource != "" {
		return nil
	}
	addToleration(pod, corev1.TaintNodeNotReady, p.NotReadySeconds)
	addToleration(pod, corev1.TaintNodeUnreachable, p.UnreachableSeconds)
	return nil
}

func addToleration(pod *core.Pod, taint string, seconds int64) {
	if tolerates(pod.Spec.Tolerations, taint) {
		return
	}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
		Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(seconds),
	})
}

func tolerates(tolerations []corev1.Toleration, taint string) bool {
	for _, t := range tolerations {
		if (t.Key == taint || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return true
		}
	}
	return false
}
