package node

import (
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/mountinfo"
)

// volumesInUse are the volumes that upstream's kubelet said to be in use before this one took the node
// over, until none is mounted any more. This kubelet has no volumes that are attached; but while the
// status names one, the attach-detach controller never detaches it from a healthy node, and if it does
// while the volume is mounted, data is lost. Which mount is of which volume only the plugins know.
func (m *Manager) volumesInUse(before []corev1.UniqueVolumeName) []corev1.UniqueVolumeName {
	if len(before) > 0 && m.config.AttachedMounted() {
		return before
	}
	return nil
}

// AttachedMounted says whether upstream's volume plugins have anything mounted below the kubelet's
// directory: devices are below plugins/, and volumes of CSI drivers that do without it in the pods'. What
// is not known may be mounted.
func AttachedMounted(rootDir string) bool {
	mounts, err := mountinfo.Read()
	if err != nil {
		return true
	}
	root, err := filepath.EvalSymlinks(rootDir) // the table has no links
	if err != nil {
		return true
	}
	return slices.ContainsFunc(mounts.Below(root), func(point string) bool {
		below := strings.TrimPrefix(point, root)
		return strings.HasPrefix(below, "/plugins/") || strings.Contains(below, "/volumes/kubernetes.io~csi/")
	})
}
