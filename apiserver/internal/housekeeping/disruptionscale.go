package housekeeping

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// expectedScale is how many pods the owners of pods want. Pods without an owner don't
// count, and of an owner that has no number of replicas nobody can tell: that is
// kube-controller-manager's answer, which may run beside us, and would write another number into the same
// status, again and again.
func (l *disruptions) expectedScale(ctx context.Context, namespace string, pods []budgetPod) (int32, error) {
	scales := map[types.UID]int32{}
	for _, pod := range pods {
		owner := pod.controller
		if owner == nil {
			continue
		}
		if _, known := scales[owner.UID]; known {
			continue
		}
		top, replicas, err := l.scaleOf(ctx, namespace, owner)
		if err != nil {
			return 0, err
		}
		if top == "" {
			return 0, fmt.Errorf("found no controllers for pod %q", pod.name)
		}
		scales[top] = replicas
	}
	sum := int32(0)
	for _, replicas := range scales {
		sum += replicas
	}
	return sum, nil
}

// scaleOf is how many pods an owner wants, or its own owner; top is the object that has the
// number, "" if the owner no longer exists.
func (l *disruptions) scaleOf(ctx context.Context, namespace string,
	owner *metav1.OwnerReference) (top types.UID, replicas int32, err error) {
	group, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return "", 0, err
	}
	kind := schema.GroupKind{Group: group.Group, Kind: owner.Kind}
	for _, store := range l.Resources {
		if store.Info().GVK().GroupKind() == kind {
			return l.builtinScale(ctx, store, namespace, owner)
		}
	}
	if l.DynamicResources != nil {
		present, _ := l.DynamicResources.Resources()
		for _, store := range present {
			if r := store.Info(); r.GVK().GroupKind() == kind {
				return l.customScale(ctx, group.WithResource(r.Name), namespace, owner)
			}
		}
	}
	return "", 0, fmt.Errorf("no matches for kind %q in version %q", owner.Kind, owner.APIVersion)
}

func noScale(resource schema.GroupResource) error {
	return fmt.Errorf("%s does not implement the scale subresource", resource)
}

func (l *disruptions) builtinScale(ctx context.Context, store registry.Resource, namespace string,
	owner *metav1.OwnerReference) (types.UID, int32, error) {
	obj, err := getOwner(ctx, store, namespace, owner)
	if err != nil || obj == nil {
		return "", 0, err
	}
	switch o := obj.(type) {
	case *corev1.ReplicationController:
		return o.UID, ptr.Deref(o.Spec.Replicas, 0), nil
	case *appsv1.StatefulSet:
		return o.UID, ptr.Deref(o.Spec.Replicas, 0), nil
	case *appsv1.Deployment:
		return o.UID, ptr.Deref(o.Spec.Replicas, 0), nil
	case *appsv1.ReplicaSet:
		// Bounded, since a cycle of owners has no end.
		if above := metav1.GetControllerOf(o); above != nil && above.Kind == "Deployment" {
			if top, replicas, err := l.scaleOf(ctx, namespace, above); err == nil && top != "" {
				return top, replicas, nil
			}
		}
		return o.UID, ptr.Deref(o.Spec.Replicas, 0), nil
	}
	return "", 0, noScale(store.Info().GVR().GroupResource())
}

// customScale reads a custom resource's scale, where its definition has one.
func (l *disruptions) customScale(ctx context.Context, gvr schema.GroupVersionResource, namespace string,
	owner *metav1.OwnerReference) (types.UID, int32, error) {
	served, _, ok, err := l.DynamicResources.Lookup(ctx, gvr)
	if err != nil {
		return "", 0, err
	}
	if !ok {
		return "", 0, fmt.Errorf("no matches for kind %q in version %q", owner.Kind, owner.APIVersion)
	}
	for _, subresource := range served.Subresources {
		if subresource.Name != "scale" {
			continue
		}
		obj, err := getOwner(ctx, subresource.Object, namespace, owner)
		if scale, ok := obj.(*autoscalingv1.Scale); ok {
			return scale.UID, scale.Spec.Replicas, nil
		}
		return "", 0, err
	}
	return "", 0, noScale(gvr.GroupResource())
}

// getOwner returns the referenced object; nil if it no longer exists.
func getOwner(ctx context.Context, store registry.Resource, namespace string, owner *metav1.OwnerReference) (core.Object, error) {
	if !store.Info().Namespaced {
		return nil, noScale(store.Info().GVR().GroupResource()) // a mirror pod's node
	}
	encoded, err := store.Get(ctx, namespace, owner.Name, "0")
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	obj, err := store.Decode(encoded)
	if err != nil || obj.GetUID() != owner.UID {
		return nil, err
	}
	return obj, nil
}
