package registry

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/apiserver/internal/managedfields"
	"kctl/proto/core"
)

// The field managers of what the server itself writes; upstream's names.
const (
	ServerManager = "kube-apiserver"
	// ControllerManager is that of the loops that are a program of their own in upstream's
	// clusters.
	ControllerManager = "kube-controller-manager"
)

// updater is what Modify needs of Objects.
type updater interface {
	Update(ctx context.Context, target Target, change Transform, admit Admission, o *metav1.UpdateOptions) (e Encoded, created bool, err error)
}

// Modify changes an object for one of the server's own loops, without admission.
// The manager owns the changed fields from then on.
func Modify(ctx context.Context, objects updater, target Target, manager string, change Transform) error {
	admit := Admission{FieldManager: manager, MayDropManagedFields: true}
	_, _, err := objects.Update(ctx, target, change, admit, &metav1.UpdateOptions{})
	return err
}

// Apply applies fields of an existing object for one of the server's own loops, without
// admission, and whoever owned them before.
func Apply(ctx context.Context, objects Objects, target Target, manager string, fields map[string]any) error {
	return ApplyAnew(ctx, objects, target, manager, fields, func(core.Object) {})
}

// ApplyAnew is Apply for fields that have no other owners afterwards, also where the object
// has the same values already: without takes them from it first.
func ApplyAnew(ctx context.Context, objects Objects, target Target, manager string, fields map[string]any,
	without func(current core.Object)) error {
	info := objects.Info()
	applied := &unstructured.Unstructured{Object: fields}
	applied.SetGroupVersionKind(info.GVK())
	applied.SetNamespace(target.Namespace)
	applied.SetName(target.Name)
	by := managedfields.Manager{Name: manager, Subresource: target.Subresource}
	_, _, err := objects.Update(ctx, target, func(current core.Object) (core.Object, error) {
		if current == nil {
			return nil, apierrors.NewNotFound(info.GVR().GroupResource(), target.Name)
		}
		without(current)
		return info.FieldTracker.Apply(current, applied.DeepCopy(), by, true)
	}, Admission{TrackFields: func(core.Object, core.Object, []byte) {}}, &metav1.UpdateOptions{})
	return err
}
