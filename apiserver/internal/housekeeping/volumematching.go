package housekeeping

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/resources/volume"
)

// claimOf is the claim that a volume is reserved for, if any.
func claimOf(v *corev1.PersistentVolume) informer.Key {
	if v.Spec.ClaimRef == nil {
		return informer.Key{}
	}
	return informer.Key{Namespace: v.Spec.ClaimRef.Namespace, Name: v.Spec.ClaimRef.Name}
}

// isReservedFor reports whether a volume is reserved for this claim, by a user or a binder.
func isReservedFor(v *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) bool {
	return claimOf(v) == informer.Key{Namespace: c.Namespace, Name: c.Name} && (v.Spec.ClaimRef.UID == "" || v.Spec.ClaimRef.UID == c.UID)
}

// boundTo is the claim that a volume is bound to, "" if there is none.
func boundTo(v *corev1.PersistentVolume) types.UID {
	if v.Spec.ClaimRef == nil {
		return ""
	}
	return v.Spec.ClaimRef.UID
}

func isCompleted(c *corev1.PersistentVolumeClaim) bool {
	_, completed := c.Annotations[bindCompleted]
	return completed
}

func classOfVolume(v *corev1.PersistentVolume) string {
	if old, ok := v.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return old
	}
	return v.Spec.StorageClassName
}

// unfitReason is why a claim can't have a volume, whatever its source; "" if it can.
func unfitReason(v *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) string {
	wanted, has := c.Spec.Resources.Requests[corev1.ResourceStorage], v.Spec.Capacity[corev1.ResourceStorage]
	switch {
	case v.DeletionTimestamp != nil:
		return "the volume is marked for deletion \"" + v.Name + "\""
	case has.Cmp(wanted) < 0:
		return "requested PV is too small"
	case ptr.Deref(v.Spec.VolumeAttributesClassName, "") != ptr.Deref(c.Spec.VolumeAttributesClassName, ""):
		return "volumeAttributesClassName does not match"
	case ptr.Deref(v.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) != ptr.Deref(c.Spec.VolumeMode, corev1.PersistentVolumeFilesystem):
		return "incompatible volumeMode"
	case slices.ContainsFunc(c.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool {
		return !slices.Contains(v.Spec.AccessModes, m)
	}):
		return "incompatible accessMode"
	}
	return ""
}

// mismatchReason is why a claim can't have the volume that it names; "" if it can.
func mismatchReason(v *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) string {
	if why := unfitReason(v, c); why != "" || classOfVolume(v) == volume.ClassOf(c) {
		return why
	}
	return "storageClassName does not match"
}

// matchVolume returns the volume for a claim: one that is reserved for it or, if it need not wait for
// its pod, the smallest of those with the fewest access modes beyond the requested ones.
func matchVolume(c *corev1.PersistentVolumeClaim, volumes []*corev1.PersistentVolume, waits bool) *corev1.PersistentVolume {
	selector := labels.Everything()
	if c.Spec.Selector != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(c.Spec.Selector); err != nil {
			return nil // ensured by validation
		}
	}
	var best *corev1.PersistentVolume
	for _, v := range volumes {
		switch {
		case v.Spec.ClaimRef != nil:
			if isReservedFor(v, c) && unfitReason(v, c) == "" {
				return v
			}
		case waits || v.Status.Phase != corev1.VolumeAvailable || mismatchReason(v, c) != "" || !selector.Matches(labels.Set(v.Labels)):
		case best == nil || compareFit(v, best) < 0:
			best = v
		}
	}
	return best
}

func compareFit(a, b *corev1.PersistentVolume) int {
	sizeA, sizeB := a.Spec.Capacity[corev1.ResourceStorage], b.Spec.Capacity[corev1.ResourceStorage]
	return cmp.Or(cmp.Compare(len(a.Spec.AccessModes), len(b.Spec.AccessModes)), sizeA.Cmp(sizeB), cmp.Compare(a.Name, b.Name))
}
