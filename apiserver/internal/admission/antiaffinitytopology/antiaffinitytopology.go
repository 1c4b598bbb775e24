// Package antiaffinitytopology lets pods keep others off their own node only:
// one that kept them out of a whole zone could deny it to everyone. It is off
// by default.
package antiaffinitytopology

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/admission"
	"kctl/proto/core"
)

// Name is upstream's name.
const Name = "LimitPodHardAntiAffinityTopology"

// Plugin is the plugin.
type Plugin struct{ admission.OnWrites }

// Validate refuses other topologies.
func (Plugin) Validate(_ context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*core.Pod)
	if !ok || a.Subresource != "" || pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	for _, term := range pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		if term.TopologyKey != corev1.LabelHostname {
			return fmt.Errorf("affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey %v but only key %v is allowed",
				term.TopologyKey, corev1.LabelHostname)
		}
	}
	return nil
}
