package admit

import (
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
)

// SupplementalGroups refuses a pod whose processes are to have no groups of the image's, if the
// runtime reports that it can't do that (KEP-3619); it is nil before it has reported anything.
// Pods that already run were admitted before.
func SupplementalGroups(pod *core.Pod, runtime *runtimeapi.StatusResponse) Decision {
	sc := pod.Spec.SecurityContext
	strict := sc != nil && ptr.Deref(sc.SupplementalGroupsPolicy, "") == corev1.SupplementalGroupsPolicyStrict
	if !strict || runtime == nil || runtime.GetFeatures().GetSupplementalGroupsPolicy() || begun(pod) {
		return Decision{Admitted: true}
	}
	return Refuse(reasonGroups, "SupplementalGroupsPolicy=%s is not supported in this node", corev1.SupplementalGroupsPolicyStrict)
}
