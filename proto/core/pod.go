package core

import corev1 "k8s.io/api/core/v1"

// Ended reports whether the phase is one that a pod never leaves.
func Ended(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// IsMirror reports whether the pod is the API's picture of a static pod.
func IsMirror(pod *Pod) bool {
	_, mirror := pod.Annotations[ConfigMirrorAnnotation]
	return mirror
}

// ClaimName is the name of the claim behind a volume of the pod; empty if there is none.
func ClaimName(pod *Pod, volume *corev1.Volume) string {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName
	case volume.Ephemeral != nil: // made for the pod, and named after both
		return pod.Name + "-" + volume.Name
	}
	return ""
}
