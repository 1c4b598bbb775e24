// Package taintnodes keeps pods off a new node until it is ready.
package taintnodes

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/admission"
	"kctl/proto/core"
)

// Name is upstream's name.
const Name = "TaintNodesByCondition"

// Plugin is the plugin.
type Plugin struct{ admission.OnCreates }

// New returns the plugin.
func New() Plugin { return Plugin{} }

// Admit adds the taint; the node lifecycle loop removes it from a ready node.
func (Plugin) Admit(_ context.Context, a *admission.Attributes) error {
	node, ok := a.Object.(*core.Node)
	if !ok || a.Subresource != "" {
		return nil
	}
	taint := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	for _, t := range node.Spec.Taints {
		if t.MatchTaint(&taint) {
			return nil
		}
	}
	node.Spec.Taints = append(node.Spec.Taints, taint)
	return nil
}
