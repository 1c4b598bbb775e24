package volume

import (
	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/resources/pod"
)

func volumeWarnings(v *corev1.PersistentVolume) []string {
	out := classWarnings(v.Annotations)
	s := &v.Spec
	if s.NodeAffinity != nil && s.NodeAffinity.Required != nil {
		out = append(out, pod.NodeSelectorWarnings(s.NodeAffinity.Required, "spec.nodeAffinity.required")...)
	}
	if s.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		out = append(out, "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. "+
			"Instead, the recommended approach is to use dynamic provisioning.")
	}
	for _, kind := range []struct {
		name string
		used bool
	}{
		{"photonPersistentDisk", s.PhotonPersistentDisk != nil}, {"scaleIO", s.ScaleIO != nil}, {"flocker", s.Flocker != nil},
		{"storageOS", s.StorageOS != nil}, {"quobyte", s.Quobyte != nil}, {"glusterfs", s.Glusterfs != nil},
		{"cephfs", s.CephFS != nil}, {"rbd", s.RBD != nil},
	} {
		if kind.used {
			out = append(out, "spec."+kind.name+": "+check.VolumeWarnings[kind.name])
		}
	}
	return out
}
