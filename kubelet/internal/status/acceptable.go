package status

import (
	"slices"

	"kctl/proto/core"
)

// acceptable is a status that the API server takes. In a new sandbox, init containers that ended well
// run once more; the server refuses that they leave their end where their restart policy would not
// have them do so, and with them the whole status. Until they have ended again they are told of as
// they were, so that others learn the rest: that the pod is not ready, and its new address. So are
// ephemeral containers that a runtime without its records is made to run once more.
func acceptable(status core.PodStatus, object *core.Pod) core.PodStatus {
	status.InitContainerStatuses = withEnds(status.InitContainerStatuses, object.Status.InitContainerStatuses,
		func(ended *core.ContainerStatus) bool {
			return mayLeaveEnd(object, ended)
		})
	status.EphemeralContainerStatuses = withEnds(status.EphemeralContainerStatuses, object.Status.EphemeralContainerStatuses,
		func(*core.ContainerStatus) bool {
			return false
		})
	return status
}

// withEnds are the statuses with those ends that are known and may not be left.
func withEnds(statuses, known []core.ContainerStatus, mayLeave func(ended *core.ContainerStatus) bool) []core.ContainerStatus {
	cloned := false
	for i := range statuses {
		ended := find(known, statuses[i].Name)
		if statuses[i].State.Terminated != nil || ended == nil || ended.State.Terminated == nil || mayLeave(ended) {
			continue
		}
		if !cloned {
			statuses, cloned = slices.Clone(statuses), true
		}
		statuses[i] = *ended
	}
	return statuses
}

// mayLeaveEnd is the API's rule: a container may run again by its own policy, and each one may if
// any of the pod's makes all start over (KEP-5532).
func mayLeaveEnd(pod *core.Pod, ended *core.ContainerStatus) bool {
	if core.MayStartOver(&pod.Spec) {
		return true
	}
	for c := range core.Containers(&pod.Spec) {
		if c.Name == ended.Name && core.Restarts(&pod.Spec, c, ended.State.Terminated.ExitCode) {
			return true
		}
	}
	return false
}
