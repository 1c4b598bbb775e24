// Package podresize refuses to resize a pod beyond what its node has even for
// that pod alone (KEP-1287).
package podresize

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"kctl/apiserver/internal/admission"
	"kctl/proto/core"
)

// Name is upstream's name.
const Name = "PodResizeValidator"

// The causes by which clients distinguish refusals; upstream's.
const (
	causeCapacity metav1.CauseType = "NodeCapacity"
	causePlatform metav1.CauseType = "UnsupportedPlatform"
)

// Nodes finds nodes.
type Nodes interface {
	Get(ctx context.Context, namespace, name string) (*core.Node, error)
}

// Plugin is the plugin.
type Plugin struct{ Nodes Nodes }

// Handles updates.
func (Plugin) Handles(op admission.Operation) bool { return op == admission.Update }

// Validate checks the resize of a pod that has a node.
func (p Plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*core.Pod)
	old, okOld := a.OldObject.(*core.Pod)
	if !ok || !okOld || a.Subresource != "resize" || old.Spec.NodeName == "" {
		return nil
	}
	if equality.Semantic.DeepEqual(pod.Spec, old.Spec) {
		return nil
	}
	asked := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	node, err := p.Nodes.Get(ctx, "", old.Spec.NodeName)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("node %q not found", old.Spec.NodeName)
	}
	if err != nil {
		return err
	}
	if system := node.Labels[corev1.LabelOSStable]; system != "" && system != string(corev1.Linux) {
		return forbid(a, causePlatform, fmt.Errorf("pod resize is only supported on linux nodes, node %q is %q", node.Name, system))
	}
	if lacking := insufficientResources(node.Status.Allocatable, asked); len(lacking) > 0 {
		return forbid(a, causeCapacity, fmt.Errorf("node didn't have enough allocatable resources: %s", strings.Join(lacking, "; ")))
	}
	return nil
}

// insufficientResources names the resources of which the node has less than requested.
func insufficientResources(has, asked corev1.ResourceList) []string {
	var out []string
	if want, have := asked.Cpu().MilliValue(), has.Cpu().MilliValue(); want > have {
		out = append(out, fmt.Sprintf("cpu, requested: %d, allocatable: %d", want, have))
	}
	if want, have := asked.Memory().Value(), has.Memory().Value(); want > have {
		out = append(out, fmt.Sprintf("memory, requested: %d, allocatable: %d", want, have))
	}
	return out
}

func forbid(a *admission.Attributes, cause metav1.CauseType, because error) error {
	err := apierrors.NewForbidden(a.Resource.GVR().GroupResource(), a.Name, because)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: cause})
	return err
}
