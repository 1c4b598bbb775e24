package status

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/podactions"
	"kctl/proto/core"
)

// acceptable is a status that the API server takes. In a new sandbox, init containers that ended well
// run once more; the server refuses that they leave their end where their restart policy would not
// have them do so, and with them the whole status. Until they have ended again they are told of as
// they were, so that others learn the rest: that the pod is not ready, and its new address.
func acceptable(status core.PodStatus, object *core.Pod) core.PodStatus {
	cloned := false
	for i := range status.InitContainerStatuses {
		known := find(object.Status.InitContainerStatuses, status.InitContainerStatuses[i].Name)
		if status.InitContainerStatuses[i].State.Terminated != nil || known == nil || known.State.Terminated == nil || mayLeaveEnd(object, known) {
			continue
		}
		if !cloned {
			status.InitContainerStatuses, cloned = slices.Clone(status.InitContainerStatuses), true
		}
		status.InitContainerStatuses[i] = *known
	}
	return status
}

// mayLeaveEnd is the API's rule: a container may run again by its own policy, and each one may if
// any of the pod's makes all start over (KEP-5532).
func mayLeaveEnd(pod *core.Pod, ended *core.ContainerStatus) bool {
	startsOver := func(rule corev1.ContainerRestartRule) bool {
		return rule.Action == corev1.ContainerRestartRuleActionRestartAllContainers
	}
	for c := range core.Containers(&pod.Spec) {
		if slices.ContainsFunc(c.RestartPolicyRules, startsOver) {
			return true
		}
		if c.Name == ended.Name && podactions.Restarts(&pod.Spec, c, ended.State.Terminated.ExitCode) {
			return true
		}
	}
	return false
}
