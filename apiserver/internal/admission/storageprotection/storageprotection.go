// Package storageprotection marks new volumes, claims and classes of volume
// attributes by a finalizer, so that they stay for as long as somebody uses
// them (Kubernetes docs, "Storage Object in Use Protection"). The loops that
// take the finalizers off again are housekeeping's, or kube-controller-manager's.
package storageprotection

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"kctl/apiserver/internal/admission"
	"kctl/proto/core"
)

// Name is upstream's name.
const Name = "StorageObjectInUseProtection"

// The finalizers, which are upstream's.
const (
	VolumeFinalizer          = "kubernetes.io/pv-protection"
	ClaimFinalizer           = "kubernetes.io/pvc-protection"
	AttributesClassFinalizer = "kubernetes.io/vac-protection"
)

// Plugin is the plugin.
type Plugin struct{}

// Handles creates.
func (Plugin) Handles(op admission.Operation) bool { return op == admission.Create }

// Admit adds the finalizer of the object's kind.
func (Plugin) Admit(_ context.Context, a *admission.Attributes) error {
	finalizer := finalizerOf(a.Object)
	if finalizer == "" || a.Subresource != "" {
		return nil
	}
	if has := a.Object.GetFinalizers(); !slices.Contains(has, finalizer) {
		a.Object.SetFinalizers(append(has, finalizer))
	}
	return nil
}

func finalizerOf(obj core.Object) string {
	switch obj.(type) {
	case *corev1.PersistentVolume:
		return VolumeFinalizer
	case *corev1.PersistentVolumeClaim:
		return ClaimFinalizer
	case *storagev1.VolumeAttributesClass:
		return AttributesClassFinalizer
	}
	return ""
}
