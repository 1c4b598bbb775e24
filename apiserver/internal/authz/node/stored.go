package node

import (
	"context"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/informer"
	"kctl/proto/core"
)

// Stored reads an object as it is stored now.
type Stored func(ctx context.Context, r core.Resource, namespace, name string) (core.Object, error)

var (
	volumeResource     = core.PersistentVolumes
	claimResource      = core.PersistentVolumeClaims
	attachmentResource = core.Resource{Group: storagev1.GroupName, Version: "v1", Name: "volumeattachments", Kind: "VolumeAttachment"}
	sliceResource      = core.Resource{Group: resourcev1.GroupName, Version: "v1", Name: "resourceslices", Kind: "ResourceSlice"}
	podRequestResource = core.Resource{
		Group: certificatesv1.GroupName, Version: "v1", Name: "podcertificaterequests", Kind: "PodCertificateRequest", Namespaced: true,
	}
)

// objectNamesNode: the stored object names the node.
func objectNamesNode(r core.Resource, nodeOf func(obj core.Object) string) rule {
	return func(ctx context.Context, a *Authorizer, node string, at *authz.Attributes) string {
		if at.Name != "" {
			if obj, err := a.Stored(ctx, r, at.Namespace, at.Name); err == nil && nodeOf(obj) == node {
				return ""
			}
		}
		return unrelatedReason(node)
	}
}

func nodeOfAttachment(obj core.Object) string { return obj.(*storagev1.VolumeAttachment).Spec.NodeName }

func nodeOfRequest(obj core.Object) string {
	return string(obj.(*certificatesv1.PodCertificateRequest).Spec.NodeName)
}

func nodeOfSlice(obj core.Object) string {
	return ptr.Deref(obj.(*resourcev1.ResourceSlice).Spec.NodeName, "")
}

// boundVolume: a pod of the node uses the claim that the volume is bound to.
func boundVolume(ctx context.Context, a *Authorizer, node string, at *authz.Attributes) string {
	obj, err := a.Stored(ctx, volumeResource, "", at.Name)
	if err != nil {
		return unrelatedReason(node)
	}
	claim := obj.(*corev1.PersistentVolume).Spec.ClaimRef
	if claim != nil && a.anyPodNames(node, claim.Namespace, claim.Name, claimsOf) {
		return ""
	}
	return unrelatedReason(node)
}

// referencedSecret: a pod of the node names it, or a volume that such a pod has claimed.
func referencedSecret(ctx context.Context, a *Authorizer, node string, at *authz.Attributes) string {
	reason := podReferences(secretsOf)(ctx, a, node, at)
	if reason == "" || at.Name == "" {
		return reason
	}
	for _, pod := range a.Pods.ByIndex(node) {
		for _, claim := range pod.Claims {
			if a.volumeHasSecret(ctx, pod.Namespace, claim, corev1.SecretReference{Namespace: at.Namespace, Name: at.Name}) {
				return ""
			}
		}
	}
	return reason
}

// volumeHasSecret looks at the volume that a claim is bound to. A claim's
// binding alone proves nothing, since its owner can write it: the volume has to
// name the claim, too.
func (a *Authorizer) volumeHasSecret(ctx context.Context, namespace, claim string, secret corev1.SecretReference) bool {
	obj, err := a.Stored(ctx, claimResource, namespace, claim)
	if err != nil {
		return false
	}
	name := obj.(*corev1.PersistentVolumeClaim).Spec.VolumeName
	if name == "" {
		return false
	}
	if obj, err = a.Stored(ctx, volumeResource, "", name); err != nil {
		return false
	}
	spec := &obj.(*corev1.PersistentVolume).Spec
	bound := spec.ClaimRef
	return bound != nil && bound.Namespace == namespace && bound.Name == claim && slices.Contains(secretsOfVolume(spec), secret)
}

// secretsOfVolume are those that a node has to read to mount a volume, without
// those of a driver's controller. A secret without a namespace is in the
// claim's.
func secretsOfVolume(spec *corev1.PersistentVolumeSpec) []corev1.SecretReference {
	var refs []*corev1.SecretReference
	switch {
	case spec.CSI != nil:
		refs = append(refs, spec.CSI.NodeStageSecretRef, spec.CSI.NodePublishSecretRef, spec.CSI.NodeExpandSecretRef)
	case spec.AzureFile != nil:
		refs = append(refs, &corev1.SecretReference{Name: spec.AzureFile.SecretName, Namespace: ptr.Deref(spec.AzureFile.SecretNamespace, "")})
	case spec.CephFS != nil:
		refs = append(refs, spec.CephFS.SecretRef)
	case spec.Cinder != nil:
		refs = append(refs, spec.Cinder.SecretRef)
	case spec.FlexVolume != nil:
		refs = append(refs, spec.FlexVolume.SecretRef)
	case spec.RBD != nil:
		refs = append(refs, spec.RBD.SecretRef)
	case spec.ScaleIO != nil:
		refs = append(refs, spec.ScaleIO.SecretRef)
	case spec.ISCSI != nil:
		refs = append(refs, spec.ISCSI.SecretRef)
	case spec.StorageOS != nil && spec.StorageOS.SecretRef != nil:
		ref := spec.StorageOS.SecretRef
		refs = append(refs, &corev1.SecretReference{Namespace: ref.Namespace, Name: ref.Name})
	}
	var out []corev1.SecretReference
	for _, ref := range refs {
		if ref == nil || ref.Name == "" {
			continue
		}
		if ref.Namespace == "" {
			ref = &corev1.SecretReference{Namespace: spec.ClaimRef.Namespace, Name: ref.Name}
		}
		out = append(out, *ref)
	}
	return out
}

func secretsOf(p informer.Pod) []string        { return p.Secrets }
func configMapsOf(p informer.Pod) []string     { return p.ConfigMaps }
func claimsOf(p informer.Pod) []string         { return p.Claims }
func resourceClaimsOf(p informer.Pod) []string { return p.ResourceClaims }
