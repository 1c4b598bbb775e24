package claim

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// groupAnnotation names the group of a volume whose files belong to it (Kubernetes' documentation of persistent
// volumes, Access Control).
const groupAnnotation = "pv.beta.kubernetes.io/gid"

// Groups are those that a persistent volume gives to the pods that use it. What is no number is ignored, as by
// upstream's kubelet.
func Groups(volume *corev1.PersistentVolume) []int64 {
	group, err := strconv.ParseUint(volume.Annotations[groupAnnotation], 10, 32)
	if err != nil {
		return nil
	}
	return []int64{int64(group)}
}
