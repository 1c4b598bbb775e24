package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
)

// Objects reads claims and volumes.
type Objects interface {
	Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error)
	PersistentVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error)
}

// protection keeps a deleted claim as long as a pod uses it.
const protection = "kubernetes.io/pvc-protection"

// ReadOnly says that the pod wants to read only.
func ReadOnly(volume *corev1.Volume) bool {
	return volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ReadOnly
}

// Find returns the volume that is bound to the claim of a pod's volume.
func Find(ctx context.Context, objects Objects, pod *core.Pod, volume *corev1.Volume) (*corev1.PersistentVolume, error) {
	name := core.ClaimName(pod, volume)
	claim, err := bound(ctx, objects, pod.Namespace, name)
	if err != nil {
		return nil, fmt.Errorf("error processing PVC %s/%s: %w", pod.Namespace, name, err)
	}
	if volume.Ephemeral != nil && !metav1.IsControlledBy(claim, pod) {
		return nil, fmt.Errorf("PVC %s/%s was not created for pod %s/%s (pod is not owner)", pod.Namespace, name, pod.Namespace, pod.Name)
	}
	found, err := volumeOf(ctx, objects, claim)
	if err != nil {
		return nil, fmt.Errorf("error processing PVC %s/%s: %w", pod.Namespace, name, err)
	}
	if mode := ptr.Deref(found.Spec.VolumeMode, corev1.PersistentVolumeFilesystem); mode != corev1.PersistentVolumeFilesystem {
		return nil, fmt.Errorf("volume %s has volumeMode %s, but is specified in volumeMounts", volume.Name, mode)
	}
	return found, nil
}

func bound(ctx context.Context, objects Objects, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	claim, err := objects.Claim(ctx, namespace, name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("failed to fetch PVC from API server: %w", err)
	case claim.DeletionTimestamp != nil && !slices.Contains(claim.Finalizers, protection):
		return nil, errors.New("PVC is being deleted")
	case claim.Status.Phase != corev1.ClaimBound:
		return nil, errors.New("PVC is not bound")
	case claim.Spec.VolumeName == "":
		return nil, errors.New("PVC has empty pvc.Spec.VolumeName")
	}
	return claim, nil
}

// volumeOf is the volume that the claim names, if the volume names the claim as
// well: a claim alone is only its owner's assertion.
func volumeOf(ctx context.Context, objects Objects, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	name := claim.Spec.VolumeName
	found, err := objects.PersistentVolume(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("failed to fetch PV %s from API server: %w", name, err)
	}
	ref := found.Spec.ClaimRef
	if ref == nil {
		return nil, fmt.Errorf("found PV object %s but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim", name)
	}
	if ref.UID != claim.UID {
		return nil, fmt.Errorf("found PV object %s but its pv.Spec.ClaimRef.UID %s does not point to claim.UID %s", name, ref.UID, claim.UID)
	}
	return found, nil
}

// CheckNode says why the volume can't be used on a node with these labels.
func CheckNode(volume *corev1.PersistentVolume, labels map[string]string) error {
	if volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		return nil
	}
	selector, err := nodeaffinity.NewNodeSelector(volume.Spec.NodeAffinity.Required)
	if err != nil {
		return err
	}
	if !selector.Match(&core.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}}) {
		return errors.New("no matching NodeSelectorTerms")
	}
	return nil
}

// MountOptions are those that the volume is to be mounted with.
func MountOptions(volume *corev1.PersistentVolume) []string {
	if old, ok := volume.Annotations[corev1.MountOptionAnnotation]; ok {
		return strings.Split(old, ",")
	}
	return volume.Spec.MountOptions
}

// OncePod says that only one pod may use the volume at a time.
func OncePod(volume *corev1.PersistentVolume) bool {
	return slices.Equal(volume.Spec.AccessModes, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod})
}
