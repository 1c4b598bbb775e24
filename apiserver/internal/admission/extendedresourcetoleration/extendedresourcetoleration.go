// Package extendedresourcetoleration lets pods that request an extended
// resource onto nodes tainted with its name, which keep all others off. It is
// off by default.
package extendedresourcetoleration

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// Name is upstream's name.
const Name = "ExtendedResourceToleration"

// Plugin is the plugin.
type Plugin struct{ admission.OnWrites }

// Admit adds a toleration for each requested extended resource.
func (Plugin) Admit(_ context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*core.Pod)
	if !ok || a.Subresource != "" {
		return nil
	}
	asked := sets.New[string]()
	for c := range core.Containers(&pod.Spec) {
		for name := range c.Resources.Requests {
			if check.IsExtended(name) {
				asked.Insert(string(name))
			}
		}
	}
	tolerated := sets.New[string]()
	for i := range pod.Spec.Tolerations {
		t, forever := &pod.Spec.Tolerations[i], pod.Spec.Tolerations[i]
		forever.TolerationSeconds = nil // upstream replaces one that differs only in this
		if asked.Has(t.Key) && forever == tolerationOf(t.Key) {
			*t = forever
			tolerated.Insert(t.Key)
		}
	}
	for _, name := range sets.List(asked.Difference(tolerated)) {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, tolerationOf(name))
	}
	return nil
}

// tolerationOf tolerates the taint of nodes that have an extended resource.
func tolerationOf(name string) corev1.Toleration {
	return corev1.Toleration{Key: name, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
}
