package admit

import (
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

// AppArmorEnforced says whether the kernel holds processes to AppArmor profiles.
func AppArmorEnforced() bool {
	data, err := os.ReadFile("/sys/module/apparmor/parameters/enabled")
	return err == nil && strings.HasPrefix(string(data), "Y")
}

// AppArmor refuses a pod with a profile if the kernel enforces none: no attempt of
// the runtime could succeed. Pods that already run were admitted before.
func AppArmor(pod *core.Pod, enforced bool) Decision {
	if enforced || begun(pod) || !wantsAppArmor(&pod.Spec) {
		return Decision{Admitted: true}
	}
	return Refuse(reasonAppArmor, "Cannot enforce AppArmor: AppArmor is not enabled on the host")
}

// begun tells whether the pod has been started, by an earlier kubelet.
func begun(pod *core.Pod) bool {
	return pod.Status.Phase != "" && pod.Status.Phase != corev1.PodPending
}

func wantsAppArmor(spec *core.PodSpec) bool {
	var ofPod *corev1.AppArmorProfile
	if spec.SecurityContext != nil {
		ofPod = spec.SecurityContext.AppArmorProfile
	}
	wants := func(sc *corev1.SecurityContext) bool {
		profile := ofPod
		if sc != nil && sc.AppArmorProfile != nil {
			profile = sc.AppArmorProfile
		}
		return profile != nil && profile.Type != corev1.AppArmorProfileTypeUnconfined
	}
	for c := range core.Containers(spec) {
		if wants(c.SecurityContext) {
			return true
		}
	}
	for i := range spec.EphemeralContainers {
		if wants(spec.EphemeralContainers[i].SecurityContext) {
			return true
		}
	}
	return false
}
