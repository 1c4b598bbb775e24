package pod

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/resources/check"
)

// tokenSeconds is how long a projected service account token lives.
const tokenSeconds = int64(60 * 60)

func defaultVolume(v *corev1.Volume) {
	if ptr.AllPtrFieldsNil(&v.VolumeSource) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	switch {
	case v.Secret != nil:
		defaultPointer(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	case v.ConfigMap != nil:
		defaultPointer(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	case v.HostPath != nil:
		defaultPointer(&v.HostPath.Type, corev1.HostPathUnset)
	case v.DownwardAPI != nil:
		defaultPointer(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		defaultDownward(v.DownwardAPI.Items)
	case v.Projected != nil:
		defaultProjected(v.Projected)
	case v.Image != nil && v.Image.PullPolicy == "":
		v.Image.PullPolicy = pullPolicy(v.Image.Reference)
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		claim := &v.Ephemeral.VolumeClaimTemplate.Spec
		defaultPointer(&claim.VolumeMode, corev1.PersistentVolumeFilesystem)
		check.RoundUpQuantities(claim.Resources.Limits, claim.Resources.Requests)
	case v.ISCSI != nil:
		defaultTo(&v.ISCSI.ISCSIInterface, "default")
	case v.RBD != nil:
		defaultTo(&v.RBD.RBDPool, "rbd")
		defaultTo(&v.RBD.RadosUser, "admin")
		defaultTo(&v.RBD.Keyring, "/etc/ceph/keyring")
	case v.ScaleIO != nil:
		defaultTo(&v.ScaleIO.StorageMode, "ThinProvisioned")
		defaultTo(&v.ScaleIO.FSType, "xfs")
	case v.AzureDisk != nil:
		defaultPointer(&v.AzureDisk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		defaultPointer(&v.AzureDisk.Kind, corev1.AzureSharedBlobDisk)
		defaultPointer(&v.AzureDisk.FSType, "ext4")
		defaultPointer(&v.AzureDisk.ReadOnly, false)
	}
}

func defaultProjected(p *corev1.ProjectedVolumeSource) {
	defaultPointer(&p.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	for i := range p.Sources {
		source := &p.Sources[i]
		if source.DownwardAPI != nil {
			defaultDownward(source.DownwardAPI.Items)
		}
		if source.ServiceAccountToken != nil {
			defaultPointer(&source.ServiceAccountToken.ExpirationSeconds, tokenSeconds)
		}
		if source.PodCertificate != nil {
			defaultPointer(&source.PodCertificate.MaxExpirationSeconds, int32(24*60*60))
		}
	}
}

func defaultDownward(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		if ref := items[i].FieldRef; ref != nil {
			defaultTo(&ref.APIVersion, "v1")
		}
	}
}
