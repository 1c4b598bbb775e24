package volumes

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
	"kctl/scheduler/framework"
)

// Annotations by which Kubernetes' volume controller and a scheduler
// communicate (API docs, "Persistent Volumes", binding).
const (
	BindCompleted     = "pv.kubernetes.io/bind-completed"
	BoundByController = "pv.kubernetes.io/bound-by-controller"
	SelectedNode      = "volume.kubernetes.io/selected-node"
	noProvisioner     = "kubernetes.io/no-provisioner"
)

// HasClaims reports whether pod has any.
func HasClaims(pod *core.Pod) bool {
	for i := range pod.Spec.Volumes {
		if core.ClaimName(pod, &pod.Spec.Volumes[i]) != "" {
			return true
		}
	}
	return false
}

// Names reports whether pod has the claim.
func Names(pod *core.Pod, claim *corev1.PersistentVolumeClaim) bool {
	if claim == nil || claim.Namespace != pod.Namespace {
		return false
	}
	for i := range pod.Spec.Volumes {
		if core.ClaimName(pod, &pod.Spec.Volumes[i]) == claim.Name {
			return true
		}
	}
	return false
}

// Claim is the claim of a volume of pod; nil without one. The error says why a
// pod with it can go nowhere.
func (v *Volumes) Claim(pod *core.Pod, volume *corev1.Volume) (*corev1.PersistentVolumeClaim, error) {
	name := core.ClaimName(pod, volume)
	if name == "" {
		return nil, nil
	}
	claim, known := v.claims.Get(pod.Namespace, name)
	switch {
	case !known && volume.Ephemeral != nil:
		return nil, fmt.Errorf("waiting for ephemeral volume controller to create the persistentvolumeclaim %q", name)
	case !known:
		return nil, fmt.Errorf("persistentvolumeclaim %q not found", name)
	case volume.Ephemeral != nil && !metav1.IsControlledBy(claim, pod):
		return nil, fmt.Errorf("PVC %s/%s was not created for pod %s/%s (pod is not owner)", claim.Namespace, name, pod.Namespace, pod.Name)
	}
	return claim, nil
}

// claimsOf are the claims of pod.
func (v *Volumes) claimsOf(pod *core.Pod) ([]*corev1.PersistentVolumeClaim, error) {
	var claims []*corev1.PersistentVolumeClaim
	for i := range pod.Spec.Volumes {
		claim, err := v.Claim(pod, &pod.Spec.Volumes[i])
		if err != nil {
			return nil, err
		}
		if claim != nil {
			claims = append(claims, claim)
		}
	}
	return claims, nil
}

// Of returns the claims of pod to a plugin that gives its name, once everything
// needed to judge them is known; otherwise the status says why not.
func (v *Volumes) Of(ctx context.Context, pod *core.Pod, plugin string) ([]*corev1.PersistentVolumeClaim, *framework.Status) {
	if err := v.Ready(ctx); err != nil {
		return nil, framework.AsError(err)
	}
	claims, err := v.claimsOf(pod)
	if err != nil {
		return nil, framework.NewStatus(framework.UnschedulableAndUnresolvable, err.Error()).By(plugin)
	}
	return claims, nil
}

// Current is the claim as it is now.
func (v *Volumes) Current(claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, bool) {
	now, known := v.claims.Get(claim.Namespace, claim.Name)
	return now, known && now.UID == claim.UID
}

// Volume is the volume of that name.
func (v *Volumes) Volume(name string) (*corev1.PersistentVolume, bool) {
	return v.volumes.Get("", name)
}

// Class is the class of a claim, nil if it is not there.
func (v *Volumes) Class(claim *corev1.PersistentVolumeClaim) *storagev1.StorageClass {
	class, known := v.classes.Get("", ClassName(claim))
	if !known {
		return nil
	}
	return class
}

// ClassName is the name of a claim's class; empty for none.
func ClassName(claim *corev1.PersistentVolumeClaim) string {
	if name, has := claim.Annotations[corev1.BetaStorageClassAnnotation]; has {
		return name
	}
	if claim.Spec.StorageClassName != nil {
		return *claim.Spec.StorageClassName
	}
	return ""
}

// Limits are how many volumes of each driver can be on a node.
func (v *Volumes) Limits(node string) map[string]int64 {
	limits := map[string]int64{}
	if found, known := v.nodes.Get("", node); known {
		for _, driver := range found.Spec.Drivers {
			if driver.Allocatable != nil && driver.Allocatable.Count != nil {
				limits[driver.Name] = int64(*driver.Allocatable.Count)
			}
		}
	}
	return limits
}

// Installed reports whether a node can have volumes of a driver: only drivers
// with preventPodSchedulingIfMissing must be installed there.
func (v *Volumes) Installed(driver, node string) bool {
	known, has := v.drivers.Get("", driver)
	if !has || known.Spec.PreventPodSchedulingIfMissing == nil || !*known.Spec.PreventPodSchedulingIfMissing {
		return true
	}
	found, has := v.nodes.Get("", node)
	return has && slices.ContainsFunc(found.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver })
}

// EachAttached visits the CSI volumes that are attached to a node, whether pods
// use them or not.
func (v *Volumes) EachAttached(node string, visit func(driver, handle string)) {
	for _, attachment := range v.attached.ByIndex(byNode, node) {
		name := attachment.Spec.Source.PersistentVolumeName
		if name == nil {
			continue
		}
		if volume, known := v.Volume(*name); known && volume.Spec.CSI != nil {
			visit(attachment.Spec.Attacher, volume.Spec.CSI.VolumeHandle)
		}
	}
}

// IsBound reports whether the claim has its volume for good.
func IsBound(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeName != "" && metav1.HasAnnotation(claim.ObjectMeta, BindCompleted)
}

// Waits reports whether the claim gets a volume only once its pod has a node.
func (v *Volumes) Waits(claim *corev1.PersistentVolumeClaim) bool {
	if claim.Spec.VolumeName != "" {
		return false
	}
	class := v.Class(claim)
	return class != nil && ptr.Deref(class.VolumeBindingMode, "") == storagev1.VolumeBindingWaitForFirstConsumer
}
