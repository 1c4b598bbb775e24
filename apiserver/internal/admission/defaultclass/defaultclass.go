// Package defaultclass gives volume claims and ingresses without a class the
// one that an annotation marks as the default: the plugins DefaultStorageClass
// and DefaultIngressClass.
package defaultclass

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/networking"
	"kctl/apiserver/internal/resources/storage"
	"kctl/proto/core"
)

// Upstream's names of the plugins.
const (
	StorageName = "DefaultStorageClass"
	IngressName = "DefaultIngressClass"
)

// Classes are the classes of one kind: a registry.Resource.
type Classes interface {
	List(ctx context.Context, namespace string, o registry.ListOptions) (registry.List, error)
	Decode(e registry.Encoded) (core.Object, error)
}

// ForClaims is the plugin DefaultStorageClass.
type ForClaims struct {
	admission.OnCreates // what is there keeps what it has
	Classes             Classes
}

// Admit sets the class of a new claim, unless it explicitly has "".
func (p ForClaims) Admit(ctx context.Context, a *admission.Attributes) error {
	claim, ok := a.Object.(*corev1.PersistentVolumeClaim)
	if !ok || a.Subresource != "" || claim.Spec.StorageClassName != nil {
		return nil
	}
	if _, named := claim.Annotations[corev1.BetaStorageClassAnnotation]; named {
		return nil
	}
	name, err := defaultClassName(ctx, p.Classes, storage.IsDefaultClass)
	if name != "" {
		claim.Spec.StorageClassName = &name
	}
	return err
}

// ForIngresses is the plugin DefaultIngressClass.
type ForIngresses struct {
	admission.OnCreates // what is there keeps what it has
	Classes             Classes
}

// Admit sets the class of a new ingress.
func (p ForIngresses) Admit(ctx context.Context, a *admission.Attributes) error {
	ingress, ok := a.Object.(*networkingv1.Ingress)
	if !ok || a.Subresource != "" || ingress.Spec.IngressClassName != nil {
		return nil
	}
	if _, named := ingress.Annotations[networking.ClassAnnotation]; named {
		return nil
	}
	name, err := defaultClassName(ctx, p.Classes, func(c *networkingv1.IngressClass) bool {
		return c.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true"
	})
	if name != "" {
		ingress.Spec.IngressClassName = &name
	}
	return err
}

// defaultClassName is the name of the class that is marked as the default, or "". If
// there are several, the newest counts, and among equals the first by name.
// There are few classes, and few objects without one, so they are read each
// time.
func defaultClassName[T core.Object](ctx context.Context, classes Classes, isDefault func(class T) bool) (string, error) {
	list, err := classes.List(ctx, "", registry.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("look for the default class: %w", err)
	}
	var found core.Object
	for _, item := range list.Items {
		obj, err := classes.Decode(item)
		if err != nil {
			return "", fmt.Errorf("look for the default class: %w", err)
		}
		if isDefault(obj.(T)) && (found == nil || precedes(obj, found)) {
			found = obj
		}
	}
	if found == nil {
		return "", nil
	}
	return found.GetName(), nil
}

func precedes(a, b core.Object) bool {
	made, other := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if made.Equal(&other) {
		return a.GetName() < b.GetName()
	}
	return other.Before(&made)
}
