// Package storageprotection adds a finalizer to new volumes, claims and volume
// attributes classes, so that they stay as long as they are in use (Kubernetes
// docs, "Storage Object in Use Protection"). Housekeeping's loops, or
// kube-controller-manager's, remove the finalizers.
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

// The finalizers; upstream's names.
const (
	VolumeFinalizer          = "kubernetes.io/pv-protection"
	ClaimFinalizer           = "kubernetes.io/pvc-protection"
	AttributesClassFinalizer = "kubernetes.io/vac-protection"
)

// Plugin is the plugin.
type Plugin struct{ admission.OnCreates }

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
