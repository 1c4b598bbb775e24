// Package runtimeclass adds a runtime class's overhead and node constraints to
// pods, and refuses pods whose class does not exist.
package runtimeclass

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/admission"
	"kctl/proto/core"
)

// Name is upstream's name.
const Name = "RuntimeClass"

// Classes finds runtime classes as stored now: few pods have one, and a deleted
// class must not be used any more.
type Classes interface {
	Live(ctx context.Context, namespace, name string) (*nodev1.RuntimeClass, error)
}

// Plugin is the plugin.
type Plugin struct {
	admission.OnCreates
	classes Classes
}

// New returns the plugin.
func New(classes Classes) *Plugin { return &Plugin{classes: classes} }

// Admit merges the class into the pod.
func (p *Plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	pod, class, err := p.podAndClass(ctx, a)
	if err != nil || class == nil {
		return err
	}
	if class.Overhead != nil {
		if len(pod.Spec.Overhead) > 0 && !equality.Semantic.DeepEqual(pod.Spec.Overhead, class.Overhead.PodFixed) {
			return errOtherOverhead
		}
		pod.Spec.Overhead = class.Overhead.DeepCopy().PodFixed
	}
	return addNodeConstraints(pod, class.Scheduling)
}

// Validate checks what a later plugin may have changed.
func (p *Plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	pod, class, err := p.podAndClass(ctx, a)
	switch {
	case err != nil || pod == nil:
		return err
	case class == nil || class.Overhead == nil:
		if pod.Spec.Overhead != nil { // even an empty one
			return errors.New("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
		}
	case !equality.Semantic.DeepEqual(pod.Spec.Overhead, class.Overhead.PodFixed):
		return errOtherOverhead
	}
	return nil
}

var errOtherOverhead = errors.New("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")

// podAndClass returns the new pod and its class; nil if the object is not a pod or has no class.
func (p *Plugin) podAndClass(ctx context.Context, a *admission.Attributes) (*core.Pod, *nodev1.RuntimeClass, error) {
	pod, ok := a.Object.(*core.Pod)
	if !ok || a.Subresource != "" {
		return nil, nil, nil
	}
	if pod.Spec.RuntimeClassName == nil {
		return pod, nil, nil
	}
	class, err := p.classes.Live(ctx, "", *pod.Spec.RuntimeClassName)
	if apierrors.IsNotFound(err) {
		return nil, nil, fmt.Errorf("pod rejected: RuntimeClass %q not found", *pod.Spec.RuntimeClassName)
	}
	return pod, class, err
}

// addNodeConstraints restricts the pod to the nodes that have the class.
func addNodeConstraints(pod *core.Pod, s *nodev1.Scheduling) error {
	if s == nil {
		return nil
	}
	for key, value := range s.NodeSelector {
		if own, ok := pod.Spec.NodeSelector[key]; ok && own != value {
			return fmt.Errorf("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s", key, value, key, own)
		}
	}
	if len(s.NodeSelector) > 0 && pod.Spec.NodeSelector == nil {
		pod.Spec.NodeSelector = make(map[string]string, len(s.NodeSelector))
	}
	maps.Copy(pod.Spec.NodeSelector, s.NodeSelector)
	for i := range s.Tolerations {
		if !containsToleration(pod.Spec.Tolerations, &s.Tolerations[i]) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, *s.Tolerations[i].DeepCopy())
		}
	}
	return nil
}

func containsToleration(tolerations []corev1.Toleration, t *corev1.Toleration) bool {
	return slices.ContainsFunc(tolerations, func(have corev1.Toleration) bool { return equality.Semantic.DeepEqual(&have, t) })
}
