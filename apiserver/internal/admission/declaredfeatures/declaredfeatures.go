// Package declaredfeatures refuses changes of a running pod that need a feature
// which its node does not declare (KEP-5328).
package declaredfeatures

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-helpers/nodedeclaredfeatures"

	"kctl/apiserver/internal/admission"
	"kctl/proto/core"
	"kctl/proto/release"
)

// Name is upstream's name.
const Name = "NodeDeclaredFeatureValidator"

// Nodes finds nodes.
type Nodes interface {
	Get(ctx context.Context, namespace, name string) (*core.Node, error)
}

// Plugin is the plugin.
type Plugin struct {
	nodes Nodes
	level *version.Version
}

// New returns the plugin.
func New(nodes Nodes) (*Plugin, error) {
	level, err := version.ParseSemantic(release.Version().GitVersion)
	if err != nil {
		return nil, fmt.Errorf("the version of Kubernetes that is spoken: %w", err)
	}
	return &Plugin{nodes, level}, nil
}

// Handles updates.
func (*Plugin) Handles(op admission.Operation) bool { return op == admission.Update }

// Validate checks what the change needs of the pod's node. The node itself
// writes the status.
func (p *Plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*core.Pod)
	old, okOld := a.OldObject.(*core.Pod)
	if !ok || !okOld || a.Subresource == "status" || old.Spec.NodeName == "" {
		return nil
	}
	features := nodedeclaredfeatures.DefaultFramework
	needed, err := features.InferForPodUpdate(
		&nodedeclaredfeatures.PodInfo{Spec: &old.Spec, Status: &old.Status},
		&nodedeclaredfeatures.PodInfo{Spec: &pod.Spec, Status: &pod.Status}, p.level)
	if err != nil {
		return fmt.Errorf("find out what the change asks of the node: %w", err)
	}
	if needed.IsEmpty() || equality.Semantic.DeepEqual(pod.Spec, old.Spec) { // {} and nothing are the same
		return nil
	}
	node, err := p.nodes.Get(ctx, "", old.Spec.NodeName)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("node %q not found", old.Spec.NodeName)
	}
	if err != nil {
		return err
	}
	match, err := features.MatchNode(needed, node)
	if err != nil {
		return fmt.Errorf("read the features of node %q: %w", node.Name, err)
	}
	if !match.IsMatch {
		return fmt.Errorf("pod update requires features %s which are not available on node %q",
			strings.Join(match.UnsatisfiedRequirements, ", "), node.Name)
	}
	return nil
}
