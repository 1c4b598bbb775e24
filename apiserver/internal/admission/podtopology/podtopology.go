// Package podtopology labels pods with the zone and the region of their node
// when they are bound to it, so that a pod can know where it runs (KEP-4742).
package podtopology

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/storage/raw"
	"kctl/proto/core"
)

// Name is upstream's name.
const Name = "PodTopologyLabels"

// Nodes finds nodes: a registry.Resource.
type Nodes interface {
	Get(ctx context.Context, namespace, name, resourceVersion string) (registry.Encoded, error)
}

// Plugin is the plugin.
type Plugin struct {
	admission.OnCreates // of pods, and of their bindings
	Nodes               Nodes
}

// Admit labels a pod that has a node, or the binding that gives it one, from
// which the pod gets the labels. Every pod passes here, so only the labels of
// the node, which is much larger, are decoded.
func (p Plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	node := nodeOf(a)
	if node == "" {
		return nil
	}
	encoded, err := p.Nodes.Get(ctx, "", node, "0")
	if apierrors.IsNotFound(err) {
		return nil // the node need not exist before its pods
	}
	if err != nil {
		return fmt.Errorf("look for the topology of node %q: %w", node, err)
	}
	has, err := raw.Labels(encoded.JSON)
	if err != nil {
		return fmt.Errorf("read the topology of node %q: %w", node, err)
	}
	labels := a.Object.GetLabels()
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion} {
		value, ok := has[key]
		if !ok {
			continue
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
	}
	a.Object.SetLabels(labels)
	return nil
}

func nodeOf(a *admission.Attributes) string {
	switch obj := a.Object.(type) {
	case *core.Pod:
		if a.Subresource == "" {
			return obj.Spec.NodeName
		}
	case *core.Binding:
		if a.Resource.Name == core.Pods.Name { // not through bindings, as upstream
			return obj.Target.Name
		}
	}
	return ""
}
