// Package claimresize lets volume claims grow only if their class allows
// expansion (Kubernetes docs, "Expanding Persistent Volumes Claims").
package claimresize

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/resources/volume"
)

// Name is upstream's name.
const Name = "PersistentVolumeClaimResize"

var errNotExpandable = errors.New("only dynamically provisioned pvc can be resized and the storageclass that provisions " +
	"the pvc must support resize")

// Classes finds storage classes.
type Classes interface {
	Get(ctx context.Context, namespace, name string) (*storagev1.StorageClass, error)
}

// Plugin is the plugin.
type Plugin struct{ Classes Classes }

// Handles updates.
func (Plugin) Handles(op admission.Operation) bool { return op == admission.Update }

// Validate refuses claims that request more than before and may not.
func (p Plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	claim, ok := a.Object.(*corev1.PersistentVolumeClaim)
	old, okOld := a.OldObject.(*corev1.PersistentVolumeClaim)
	if !ok || !okOld || a.Subresource != "" {
		return nil
	}
	if asked, had := claim.Spec.Resources.Requests.Storage(), old.Spec.Resources.Requests.Storage(); asked.Cmp(*had) <= 0 {
		return nil
	}
	name := volume.ClassOf(claim)
	if name == "" {
		return errNotExpandable
	}
	class, err := p.Classes.Get(ctx, "", name)
	if err != nil || !ptr.Deref(class.AllowVolumeExpansion, false) {
		return errNotExpandable
	}
	return nil
}
